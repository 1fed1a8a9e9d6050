"""Local copies of remote shards, in a bounded directory that the workers of a machine share.

A shard is known by the hash of its content. Its copy is downloaded under another name, checked
against the manifest, and renamed: a file under its own name is whole. One lock a shard keeps two
workers from fetching it twice; the least recently opened copies make room, and who has one open
goes on reading it. Whatever the local disk refuses (full, read-only) is no reason to stop: then
shards are read in place.

    <hash>.shard   a whole copy; its modification time says when it was last opened
    <hash>.part    a download; its full size is reserved from the start
    <hash>.lock    held while a copy is looked for, fetched or removed
    lock           held while room is made
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import queue
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import BinaryIO

from trainer import files
from trainer.again import TRIES, again
from trainer.data.manifest import Shard

_CHUNK_BYTES = 1 << 20
_SHARD, _PART, _LOCK = ".shard", ".part", ".lock"


class FetchFailed(OSError):
    """A shard that could not be had, after all tries."""


class NoCopy(Exception):
    """The local disk does not take it."""


class _Altered(Exception):
    """What came is not what the manifest says."""


@dataclass(frozen=True)
class Cache:
    """A directory of copies, made when it is first needed. most_bytes: all of them together."""

    directory: str
    most_bytes: int

    def open(self, url: str, shard: Shard) -> BinaryIO:
        """Opens the copy of a remote shard, fetched first if it is not here.

        Raises:
          FileNotFoundError: the store does not have it.
          FetchFailed: it could not be fetched, or came altered, every time.
        """
        try:
            return self.copy(url, shard)
        except NoCopy as reason:
            _say_once(f"cache {self.directory}: {reason}; reading in place", self.directory)
            return files.open_binary(url)

    def copy(self, url: str, shard: Shard) -> BinaryIO:
        """As `open`, but raises NoCopy if the copy cannot be kept."""
        if shard.bytes > self.most_bytes:
            raise NoCopy(
                f"a shard of {shard.bytes:,} bytes is more than cache_gigabytes "
                f"({self.most_bytes / 1e9:g})"
            )
        path = os.path.join(self.directory, shard.sha256)
        with _local_faults():
            os.makedirs(self.directory, exist_ok=True)
        with _locked(path + _LOCK):
            if not _is_whole(path + _SHARD, shard):
                self._fetch(url, shard, path)
            with _local_faults():
                os.utime(path + _SHARD)
                return open(path + _SHARD, "rb")

    def drop_damaged(self, url: str, shard: Shard) -> bool:
        """Removes a copy that is no more what was fetched; returns whether there was one."""
        path = os.path.join(self.directory, shard.sha256)
        with suppress(OSError, NoCopy), _locked(path + _LOCK):
            with open(path + _SHARD, "rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() == shard.sha256:
                    return False
            os.unlink(path + _SHARD)
            _say(f"the copy of {url} in {self.directory} was damaged: it is fetched again")
            return True
        return False

    def _fetch(self, url: str, shard: Shard, path: str) -> None:
        """Downloads, again if need be, until the copy is whole."""

        def once() -> None:
            try:
                self._make_room(shard.bytes, path + _PART)
                _download(url, shard, path + _PART)
                with _local_faults():
                    os.replace(path + _PART, path + _SHARD)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(path + _PART)

        try:
            again(once, f"shard {url}", _is_passing, files.reason)
        except FileNotFoundError:
            raise
        except files.read_errors(_Altered) as error:
            raise FetchFailed(errno.EIO, f"{files.reason(error)} ({TRIES} tries)") from None

    def _make_room(self, size: int, part: str) -> None:
        """Reserves `size` bytes under the name `part`; removes old copies if they must go."""
        with _locked(os.path.join(self.directory, "lock")), _local_faults():
            held = _sizes(self.directory, but=part)
            total = sum(found.st_size for found in held.values())
            for path, found in held.items():
                # What a killed worker was downloading goes in any case.
                if total + size <= self.most_bytes and path.endswith(_SHARD):
                    break
                if _remove_unused(path):
                    total -= found.st_size
            if total + size > self.most_bytes:
                raise NoCopy("other workers are filling all of it (raise cache_gigabytes)")
            with open(part, "wb") as file:
                file.truncate(size)


class Ahead:
    """Fetches shards in the background before they are read; `stop` ends it after the present one.

    What fails here fails again, and is told, where the shard is read.
    """

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._wanted: queue.SimpleQueue[tuple[str, Shard] | None] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="castell-staging", daemon=True).start()

    def want(self, url: str, shard: Shard) -> None:
        """Puts a shard at the end of the list."""
        self._wanted.put((url, shard))

    def stop(self) -> None:
        """Lets the thread end."""
        self._wanted.put(None)

    def _work(self) -> None:
        while (wanted := self._wanted.get()) is not None:
            with suppress(*files.read_errors(NoCopy)):
                self._cache.copy(*wanted).close()


def _is_passing(error: Exception) -> bool:
    return isinstance(error, _Altered) or files.is_passing(error)


def _download(url: str, shard: Shard, part: str) -> None:
    digest, received = hashlib.sha256(), 0
    with files.open_once(url) as source:
        with _local_faults():
            target = open(part, "r+b")  # noqa: SIM115  its errors are told apart from the source's
        try:
            while chunk := source.read(_CHUNK_BYTES):
                received += len(chunk)
                if received > shard.bytes:
                    break
                digest.update(chunk)
                with _local_faults():
                    target.write(chunk)
            with _local_faults():
                # Its name will say that it is whole, after a power cut, too.
                target.flush()
                os.fsync(target.fileno())
        finally:
            with _local_faults():
                target.close()
    if received != shard.bytes:
        more = "more" if received > shard.bytes else received
        raise _Altered(f"{more} bytes came, the manifest says {shard.bytes}")
    if digest.hexdigest() != shard.sha256:
        raise _Altered("its sha256 is not the manifest's")


def _is_whole(path: str, shard: Shard) -> bool:
    try:
        return os.path.getsize(path) == shard.bytes
    except FileNotFoundError:
        return False


def _remove_unused(path: str) -> bool:
    """Removes a copy (or what is left of one) with its lock, unless somebody is at it."""
    lock = os.path.splitext(path)[0] + _LOCK
    with _locked(lock, wait=False) as mine:
        if not mine:
            return False
        os.unlink(lock)
        try:
            os.unlink(path)
        except FileNotFoundError:  # it was a download, and is whole by now
            return False
        return True


def _sizes(directory: str, but: str) -> dict[str, os.stat_result]:
    """Returns what is held, by path: downloads first, then the copies from the oldest on."""
    held = {}
    for entry in os.scandir(directory):
        if entry.path.endswith((_SHARD, _PART)) and entry.path != but:
            with suppress(FileNotFoundError):  # renamed or removed meanwhile
                held[entry.path] = entry.stat()
    return dict(sorted(held.items(), key=lambda i: (i[0].endswith(_SHARD), i[1].st_mtime_ns)))


@contextmanager
def _locked(path: str, *, wait: bool = True) -> Iterator[bool]:
    """Holds the lock file; yields False at once if another one does and `wait` is False."""
    descriptor = None
    while descriptor is None:
        with _local_faults():
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            os.close(descriptor)
            yield False
            return
        except OSError as error:  # a network disk that has no locks
            os.close(descriptor)
            raise NoCopy(files.reason(error)) from None
        # Whoever held it may have removed the name; then it keeps nobody out any more.
        if not _is_file(path, descriptor):
            os.close(descriptor)
            descriptor = None
    try:
        yield True
    finally:
        os.close(descriptor)


def _is_file(path: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


@contextmanager
def _local_faults() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise NoCopy(files.reason(error)) from None


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


_said: set[str] = set()


def _say_once(line: str, about: str) -> None:
    if about not in _said:
        _said.add(about)
        _say(line)
