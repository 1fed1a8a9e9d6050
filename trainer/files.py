"""The one place that opens dataset files: a local path or any URL that fsspec knows.

A store that is away for a moment is waited for, also in the middle of a file.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, TypeVar, cast

from fsspec.core import url_to_fs
from fsspec.utils import get_protocol

from trainer.again import again

_ERRORS_OF_CLIENTS = (
    ("aiohttp", "ClientError"),  # http(s)://
    ("botocore.exceptions", "BotoCoreError"),  # s3://: no credentials, no such server
    ("botocore.exceptions", "ClientError"),
    ("gcsfs.retry", "HttpError"),  # gs://
    ("google.auth.exceptions", "GoogleAuthError"),
)
# What a server says of a file that is not there; of other trouble it says another number.
_NOT_THERE = (404, 410)
_LASTING = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError)
_BUFFER_BYTES = 1 << 18

_Result = TypeVar("_Result")


def join(base: str, *parts: str) -> str:
    """Joins path parts with "/", for paths and URLs alike."""
    return "/".join((base.rstrip("/"), *parts))


def is_remote(path: str) -> bool:
    """Whether `path` is a URL of something that is not this machine's file system."""
    return get_protocol(path) not in ("file", "local")


def open_once(path: str, at: int = 0) -> BinaryIO:
    """Opens `path` for reading bytes from `at` to the end; whatever fails is raised at once."""
    filesystem, name = url_to_fs(path)
    with _told_apart():
        # Records are taken in sips, one after another: that is what read-ahead is for.
        file: BinaryIO = filesystem.open(name, "rb", cache_type="readahead")
    if at:
        file.seek(at)
    return file


def open_binary(path: str) -> BinaryIO:
    """Opens `path` for reading bytes; FileNotFoundError if it is not there."""
    if not is_remote(path):
        return open_once(path)
    return cast(BinaryIO, io.BufferedReader(_Patient(path), _BUFFER_BYTES))


def read_text(path: str, errors: str = "strict") -> str:
    """Returns the whole file as UTF-8 text; errors: of decoding, as `bytes.decode` takes it."""
    with open_binary(path) as file:
        return file.read().decode("utf-8", errors)


def size(path: str) -> int:
    """Returns the size in bytes; FileNotFoundError if `path` is not there."""
    filesystem, name = url_to_fs(path)
    info: Any = _asked(path, lambda: filesystem.info(name))
    return int(info["size"])


def matching(base: str, pattern: str) -> dict[str, int]:
    """Returns the files below `base` that a glob pattern names: path from `base` on, and size."""
    filesystem, root = url_to_fs(base)
    found: Any = _asked(base, lambda: filesystem.glob(join(root, pattern), detail=True))
    return {
        path[len(root.rstrip("/")) + 1 :]: int(info["size"])
        for path, info in sorted(found.items())
        if info["type"] == "file"
    }


def read_errors(*more: type[Exception]) -> tuple[type[Exception], ...]:
    """Returns what opening and reading may raise, and `more`.

    The clients behind fsspec have errors that are no OSError. A client is imported when it is first
    used, so ask afterwards: in the `except` line itself.
    """
    clients = ((sys.modules.get(module), name) for module, name in _ERRORS_OF_CLIENTS)
    return (*more, OSError, *(getattr(module, name) for module, name in clients if module))


def is_passing(error: Exception) -> bool:
    """Whether a failed request may do better in a moment."""
    return isinstance(error, read_errors()) and not (
        isinstance(error, _LASTING) or "Credentials" in type(error).__name__
    )


def reason(error: Exception) -> str:
    """Returns why, in a few words."""
    text = error.strerror if isinstance(error, OSError) else None
    return text or str(error) or type(error).__name__


class _Patient(io.RawIOBase):
    """A remote file that is opened again where it broke off."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path
        self._at = 0
        self._file: BinaryIO | None = None
        self._asked(lambda file: None)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = self._asked(lambda file: file.seek(offset, whence))
        return self._at

    def readinto(self, buffer: Any) -> int:
        data = self._asked(lambda file: file.read(len(buffer)))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def close(self) -> None:
        self._drop()
        super().close()

    def _asked(self, of: Callable[[BinaryIO], _Result]) -> _Result:
        def once() -> _Result:
            if self._file is None:
                self._file = open_once(self._path, self._at)
            try:
                return of(self._file)
            except read_errors():
                self._drop()
                raise

        return again(once, self._path, is_passing, reason)

    def _drop(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with suppress(*read_errors()):
                file.close()


def _asked(path: str, request: Callable[[], _Result]) -> _Result:
    def once() -> _Result:
        with _told_apart():
            return request()

    return again(once, path, is_passing, reason) if is_remote(path) else once()


@contextmanager
def _told_apart() -> Iterator[None]:
    """Raises the real error where fsspec's http:// calls it "not found", as it does all of them."""
    try:
        yield
    except FileNotFoundError as error:
        cause = error.__cause__
        if isinstance(cause, read_errors()) and getattr(cause, "status", None) not in _NOT_THERE:
            raise cause from None
        raise
