"""Files out of compressed ones and archives, as streams.

Compression goes by magic bytes, not by name; every member of a gzip file is read; a zip's members
are files, but for those whose name begins with "." or "_".
"""

from __future__ import annotations

import bz2
import gzip
import itertools
import lzma
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa

from components.shard_data.formats.piece import cannot_unpack
from components.shard_data.inputs.kinds import HEAD_BYTES, is_called_records, refuse_others
from components.shard_data.inputs.zlib_stream import open_zlib
from trainer import files
from trainer.errors import UsageError

Open = Callable[[], AbstractContextManager[BinaryIO]]
# An archive in an archive in … : some are made to have no end.
_DEEPEST = 5
_MANY_BYTES = 1 << 20
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")


@dataclass(frozen=True)
class Stream:
    """An unpacked file. `path`: where it lies on this machine, if it does.

    `name` is the path of the source, with `!member` for a zip's members.
    """

    name: str
    open: Open
    path: str | None


def unpacked(name: str, opener: Open, path: str | None, work: Path) -> Iterator[Stream]:
    """Yields the files that a file holds, itself if it is not packed.

    Args:
      name: what errors call it.
      opener: gives its bytes from the start.
      path: where it lies on this machine, if it does.
      work: archives that don't lie on this machine are copied here.

    Raises:
      UsageError: it is damaged; also while a stream is read, in `reading`.
    """
    yield from _unpacked(Stream(name, opener, path), work, 0)


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Makes what reading a stream may raise an error that names the file."""
    try:
        yield
    except (EOFError, zlib.error, lzma.LZMAError, pa.ArrowException) as error:
        raise _damaged(name, error) from None
    # RuntimeError: encrypted, or packed in a way that zipfile does not know.
    except (zipfile.BadZipFile, RuntimeError, ValueError, OverflowError) as error:
        raise UsageError(f"{name} cannot be unpacked: {error}") from None
    except files.read_errors() as error:
        if isinstance(error, OSError) and error.errno is None:  # as gzip, bz2 and pyarrow say it
            raise _damaged(name, error) from None
        raise UsageError(f"cannot read {name}: {files.reason(error)}") from None


def _damaged(name: str, error: Exception) -> UsageError:
    return UsageError(f"{name} is damaged or cut off ({error}): copy it again")


def copy(stream: Stream, target: Path, change: Callable[[BinaryIO], Iterator[bytes]]) -> None:
    """Writes what `change` makes of a stream to a file of the work directory.

    Raises:
      UsageError: the stream is damaged, or the disk is full.
    """
    with reading(stream.name), stream.open() as source, _written(target) as write:
        for chunk in change(source):
            write(chunk)


def fetch(url: str, target: Path) -> None:
    """Copies a file of another machine.

    Raises:
      UsageError: it cannot be read, or the disk is full.
    """
    copy(Stream(url, partial(files.open_binary, url), None), target, as_it_is)


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Makes what writing a file of the work directory may raise an error that says so."""
    try:
        yield
    except OSError as error:
        raise cannot_unpack(target, error) from None


def as_it_is(source: BinaryIO) -> Iterator[bytes]:
    """Yields the bytes of a stream."""
    while chunk := source.read(_MANY_BYTES):
        yield chunk


@contextmanager
def _written(target: Path) -> Iterator[Callable[[bytes], None]]:
    """Gives what writes to a new file; what it raises is not about the source."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        file = target.open("wb", buffering=0)
    except OSError as error:
        raise cannot_unpack(target, error) from None

    def write(chunk: bytes) -> None:
        left = memoryview(chunk)
        try:
            while left:
                left = left[file.write(left) :]
        except OSError as error:
            raise cannot_unpack(target, error) from None

    with file:
        yield write


def _unpacked(stream: Stream, work: Path, depth: int) -> Iterator[Stream]:
    if depth > _DEEPEST:
        raise UsageError(f"{stream.name} is packed {depth} times over: unpack it first")
    refuse_others(stream.name)
    with reading(stream.name), stream.open() as source:
        head = source.read(HEAD_BYTES)
    if head.startswith(_ZIP):
        yield from _members(stream, work, depth)
    elif (decompress := _decompressor(stream.name, head)) is not None:
        opener = partial(_decompressed, decompress, stream.open)
        yield from _unpacked(Stream(stream.name, opener, None), work, depth + 1)
    else:
        yield stream


def _decompressor(name: str, head: bytes) -> Callable[[Any], Any] | None:
    for magic, decompress in _DECOMPRESSORS.items():
        if re.match(magic, head, re.DOTALL):
            return decompress
    # What TensorFlow calls ZLIB has two bytes that text may begin with, too.
    is_zlib = head[:1] == b"\x78" and int.from_bytes(head[:2], "big") % 31 == 0
    return open_zlib if is_zlib and is_called_records(name) else None


def _zstd(source: BinaryIO) -> Any:
    return pa.CompressedInputStream(pa.PythonFile(source, "r"), "zstd")


_DECOMPRESSORS: dict[bytes, Callable[[Any], Any]] = {
    rb"\x1f\x8b": lambda source: gzip.GzipFile(fileobj=source, mode="rb"),
    rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)": bz2.BZ2File,
    rb"\xfd7zXZ\x00": lzma.LZMAFile,
    rb"\x28\xb5\x2f\xfd": _zstd,
}


@contextmanager
def _decompressed(decompress: Callable[[Any], Any], opener: Open) -> Iterator[Any]:
    with opener() as source, decompress(source) as stream:
        yield stream


def _members(stream: Stream, work: Path, depth: int) -> Iterator[Stream]:
    path = stream.path
    if path is None:
        target = work / f"archive-{depth}.zip"
        copy(stream, target, as_it_is)
        path = str(target)
    with reading(stream.name), zipfile.ZipFile(path) as archive:
        inside = sorted(
            entry.filename
            for entry in archive.infolist()
            if entry.filename
            and not entry.filename.endswith("/")
            and not any(part.startswith((".", "_")) for part in entry.filename.split("/"))
        )
        for one, other in itertools.pairwise(inside):
            if one == other:
                raise UsageError(f"{stream.name} has two members called {one}: name them apart")
        if not inside:
            raise UsageError(f"{stream.name} is an archive without files")
        for member in inside:
            opener = cast(Open, partial(archive.open, member))
            yield from _unpacked(Stream(f"{stream.name}!{member}", opener, None), work, depth + 1)
    if path != stream.path:
        Path(path).unlink()
