"""Which files a SOURCE means.

A source is a file, a glob or a directory (read recursively), local or any URL that fsspec knows.
Names that begin with "." or "_" are ignored in directories and globs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from fsspec.core import url_to_fs

from components.shard_data.formats.piece import Partitions
from trainer import files
from trainer.errors import UsageError

_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
# By what a file system tells that a file was written again.
_VERSIONS = ("mtime", "etag", "ETag", "generation", "LastModified", "updated")


@dataclass(frozen=True)
class SourceFile:
    """A file to read.

    Attributes:
      path: local, or a URL.
      partitions: hive columns from its folders' names (COL=VALUE).
      stamp: size and version when it was found, as the file system tells them.
    """

    path: str
    partitions: Partitions = ()
    stamp: str = ""


def find(sources: Sequence[str]) -> list[SourceFile]:
    """Returns the files of all sources in the order given, those of one source sorted by path.

    Raises:
      UsageError: a source is not there, holds nothing to read, or a file is named twice.
    """
    found = [file for source in sources for file in _expand(source)]
    seen: set[str] = set()
    for file in found:
        if file.path in seen:
            raise UsageError(f"source {file.path} is given twice: name it once")
        seen.add(file.path)
    return found


def check_unchanged(found: Sequence[SourceFile]) -> None:
    """Asks once more what `find` asked.

    Raises:
      UsageError: a file is gone, or another one than it was.
    """
    for file in found:
        try:
            filesystem, path = url_to_fs(file.path)
            stamp = _stamp(filesystem.info(path))
        except files.read_errors(ImportError, ValueError) as error:
            raise UsageError(f"source {file.path}: {files.reason(error)}") from None
        if stamp != file.stamp:
            raise UsageError(
                f"source {file.path} changed while it was read: start again when nothing writes it"
            )


def _expand(source: str) -> list[SourceFile]:
    if not source.strip():
        raise UsageError("a source is empty text: name a file, a glob or a directory")
    try:
        filesystem, root = url_to_fs(source)
        if filesystem.isfile(root):
            return [SourceFile(source, stamp=_stamp(filesystem.info(root)))]
        is_folder = filesystem.isdir(root)
        if not is_folder and not re.search(r"[*?\[]", source):
            raise UsageError(f"no such source: {source}")
        if is_folder:
            base, listing = source.rstrip("/"), filesystem.find(root, detail=True)
        else:
            base = re.split(r"[*?\[]", source, maxsplit=1)[0].rpartition("/")[0]
            root = url_to_fs(base or ".")[1] if base or not source.startswith("/") else ""
            listing = filesystem.glob(url_to_fs(source)[1], detail=True)
    except files.read_errors(ImportError, ValueError) as error:
        raise UsageError(f"source {source}: {files.reason(error)}") from None
    kept = len(root.rstrip("/")) + 1
    stamps = {
        path[kept:]: _stamp(entry)
        for path, entry in sorted(listing.items())
        if entry.get("type") == "file" and not _hidden(path[kept:])
    }
    if not stamps:
        holds = "holds no file to read" if is_folder else "matches no file"
        raise UsageError(f"no such source: {source} {holds}")
    prefix = f"{base}/" if base or source.startswith("/") else ""
    return [SourceFile(prefix + path, _partitions(path), stamp) for path, stamp in stamps.items()]


def _stamp(entry: dict[str, Any]) -> str:
    versions = [str(entry[key]) for key in _VERSIONS if entry.get(key) is not None]
    return ":".join([str(entry.get("size")), *versions])


def _hidden(path: str) -> bool:
    return any(part.startswith((".", "_")) for part in path.split("/"))


def _partitions(path: str) -> Partitions:
    pairs = [part.partition("=") for part in path.split("/")[:-1] if "=" in part]
    return tuple(
        (unquote(key), None if value == _NULL_PARTITION else unquote(value))
        for key, _, value in pairs
    )
