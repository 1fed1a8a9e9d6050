"""The one place that opens dataset files: a local path or any URL that fsspec knows."""

from __future__ import annotations

import sys
from typing import Any, BinaryIO, cast

from fsspec.core import url_to_fs
from fsspec.utils import get_protocol

_ERRORS_OF_CLIENTS = (
    ("aiohttp", "ClientError"),  # http(s)://
    ("botocore.exceptions", "BotoCoreError"),  # s3://: no credentials, no such server
    ("botocore.exceptions", "ClientError"),
    ("gcsfs.retry", "HttpError"),  # gs://
    ("google.auth.exceptions", "GoogleAuthError"),
)


def join(base: str, *parts: str) -> str:
    """Joins path parts with "/", for paths and URLs alike."""
    return "/".join((base.rstrip("/"), *parts))


def is_remote(path: str) -> bool:
    """Whether `path` is a URL of something that is not this machine's file system."""
    return get_protocol(path) not in ("file", "local")


def open_binary(path: str) -> BinaryIO:
    """Opens `path` for reading bytes from front to back; FileNotFoundError if it is not there."""
    filesystem, name = url_to_fs(path)
    # Records are taken in sips, one after another: that is what read-ahead is for.
    return cast(BinaryIO, filesystem.open(name, "rb", cache_type="readahead"))


def read_text(path: str, errors: str = "strict") -> str:
    """Returns the whole file as UTF-8 text; errors: of decoding, as `bytes.decode` takes it."""
    with open_binary(path) as file:
        return file.read().decode("utf-8", errors)


def size(path: str) -> int:
    """Returns the size in bytes; FileNotFoundError if `path` is not there."""
    filesystem, name = url_to_fs(path)
    info: Any = filesystem.info(name)
    return int(info["size"])


def matching(base: str, pattern: str) -> dict[str, int]:
    """Returns the files below `base` that a glob pattern names: path from `base` on, and size."""
    filesystem, root = url_to_fs(base)
    found: Any = filesystem.glob(join(root, pattern), detail=True)
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


def reason(error: Exception) -> str:
    """Returns why, in a few words."""
    text = error.strerror if isinstance(error, OSError) else None
    return text or str(error) or type(error).__name__
