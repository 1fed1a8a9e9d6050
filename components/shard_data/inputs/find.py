"""Which files a SOURCE means.

A source is a file, a glob or a directory (read recursively), local or any URL that fsspec knows, or
a table of BigQuery.
Names that begin with "." or "_" are ignored in directories and globs. What has images in it is one
folder of images, and read as one.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from fsspec.core import url_to_fs

from components.shard_data.formats.piece import Partitions
from components.shard_data.inputs import bigquery
from components.shard_data.inputs.kinds import is_image
from trainer import files
from trainer.errors import UsageError

_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
# By what a file system tells that a file was written again.
_VERSIONS = ("mtime", "etag", "ETag", "generation", "LastModified", "updated")


@dataclass(frozen=True)
class SourceFile:
    """A file to read, or a folder of images.

    Attributes:
      path: local, or a URL.
      partitions: hive columns from its folders' names (COL=VALUE).
      stamp: size and version when it was found, as the file system tells them.
      images: of a folder of images, the paths below it of all files, sorted.
    """

    path: str
    partitions: Partitions = ()
    stamp: str = ""
    images: tuple[str, ...] = ()


def find(sources: Sequence[str]) -> list[SourceFile]:
    """Returns the files of all sources in the order given, those of one source sorted by path.

    Raises:
      UsageError: a source is not there, holds nothing to read, or a file is named twice or by bytes
        that are not UTF-8.
    """
    found = [file for source in sources for file in _expand(source)]
    seen: set[str] = set()
    for path in (path for file in found for path in _paths(file)):
        if not _is_text(path):
            raise UsageError(f"source {path!a}: its name is not UTF-8: rename it")
        place = path if files.is_remote(path) else os.path.realpath(url_to_fs(path)[1])
        if place in seen:
            raise UsageError(f"source {path} is given twice: name it once")
        seen.add(place)
    return found


def check_unchanged(found: Sequence[SourceFile]) -> None:
    """Asks once more what `find` asked.

    Raises:
      UsageError: a file is gone, or another one than it was.
    """
    for file in found:
        if file.path.startswith(bigquery.SCHEME):  # It is read as it was at a moment.
            continue
        try:
            filesystem, root = url_to_fs(file.path)
            filesystem.invalidate_cache()  # Stores remember what they listed.
            if file.images:
                below = _below(root, filesystem.find(root, detail=True))
                stamp = _stamp_of_all({name: below.get(name, {}) for name in file.images})
            else:
                stamp = _stamp(_followed(root, filesystem.info(root)))
        except files.read_errors(ImportError, ValueError) as error:
            raise UsageError(f"source {file.path}: {files.reason(error)}") from None
        if stamp != file.stamp:
            raise UsageError(
                f"source {file.path} changed while it was read: start again when nothing writes it"
            )


def _expand(source: str) -> list[SourceFile]:
    if not source.strip():
        raise UsageError("a source is empty text: name a file, a glob or a directory")
    if source.startswith(bigquery.SCHEME):
        return [SourceFile(bigquery.at_a_moment(source))]
    try:
        filesystem, root = url_to_fs(source)
        if filesystem.isfile(root):
            return [_file(source, _followed(root, filesystem.info(root)))]
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
    listed = {
        path: entry
        for path, entry in _below(root, listing).items()
        if entry.get("type") == "file" and not _hidden(path)
    }
    if not listed:
        holds = "holds no file to read" if is_folder else "matches no file"
        raise UsageError(f"no such source: {source} {holds}")
    if any(map(is_image, listed)):
        return [SourceFile(base or ".", stamp=_stamp_of_all(listed), images=tuple(listed))]
    prefix = f"{base}/" if base or source.startswith("/") else ""
    return [
        SourceFile(prefix + path, _partitions(path), _stamp(entry))
        for path, entry in listed.items()
    ]


def _file(source: str, entry: dict[str, Any]) -> SourceFile:
    folder, _, name = source.rpartition("/")
    if not is_image(source):
        return SourceFile(source, stamp=_stamp(entry))
    return SourceFile(folder or ".", stamp=_stamp_of_all({name: entry}), images=(name,))


def _is_text(path: str) -> bool:
    """Whether a name is text, and not bytes that this machine could not decode."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _paths(file: SourceFile) -> list[str]:
    return [files.join(file.path, name) for name in file.images] or [file.path]


def _below(root: str, listing: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Returns a listing by paths from `root` on, sorted."""
    start = len(root.rstrip("/")) + 1
    return {path[start:]: _followed(path, entry) for path, entry in sorted(listing.items())}


def _followed(path: str, entry: dict[str, Any]) -> dict[str, Any]:
    """Returns what a link leads to, if that is a file."""
    if not entry.get("islink") or not os.path.isfile(path):
        return entry
    there = os.stat(path)
    return {**entry, "type": "file", "size": there.st_size, "mtime": there.st_mtime}


def _stamp_of_all(listed: dict[str, dict[str, Any]]) -> str:
    stamps = [f"{name}\0{_stamp(entry)}" for name, entry in listed.items()]
    text = "\n".join(stamps).encode("utf-8", "surrogateescape")
    return hashlib.sha256(text).hexdigest()


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
