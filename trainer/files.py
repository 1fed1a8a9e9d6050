"""The one place that opens dataset files: a local path or any URL that fsspec knows."""

from __future__ import annotations

from typing import Any, BinaryIO, cast

from fsspec.core import url_to_fs


def join(base: str, *parts: str) -> str:
    """Joins path parts with "/", for paths and URLs alike."""
    return "/".join((base.rstrip("/"), *parts))


def open_binary(path: str) -> BinaryIO:
    """Opens `path` for reading bytes from front to back; FileNotFoundError if it is not there."""
    filesystem, name = url_to_fs(path)
    # Records are taken in sips, one after another: that is what read-ahead is for.
    return cast(BinaryIO, filesystem.open(name, "rb", cache_type="readahead"))


def read_text(path: str) -> str:
    """Returns the whole file as UTF-8 text."""
    with open_binary(path) as file:
        return file.read().decode("utf-8")


def size(path: str) -> int:
    """Returns the size in bytes; FileNotFoundError if `path` is not there."""
    filesystem, name = url_to_fs(path)
    info: Any = filesystem.info(name)
    return int(info["size"])
