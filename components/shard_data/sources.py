"""Which files a SOURCE means, and their bytes unpacked. No word about what is inside a table.

A source is a file, a glob or a directory (read recursively), local or any URL that fsspec knows.
Names that begin with "." or "_" are ignored in directories, globs and archives. Compression goes
by magic bytes, not by name; every gzip member is read; a zip's members are files.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import itertools
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import unquote

from fsspec.core import url_to_fs

from trainer import files
from trainer.errors import UsageError

Format = Literal["csv", "tsv", "parquet"]
_SUFFIXES: dict[str, Format] = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".parquet": "parquet", ".pq": "parquet",
}  # fmt: skip
_NOT_TABLES = {
    ".json", ".jsonl", ".ndjson", ".arrow", ".feather", ".ipc", ".orc", ".avro", ".tfrecord",
    ".tfrecords", ".xls", ".xlsx", ".jpg", ".jpeg", ".png", ".gif", ".bmp", ".npy", ".npz", ".pdf",
}  # fmt: skip
_OTHER_COMPRESSION = {b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
_MANY_BYTES = 1 << 22


@dataclass(frozen=True)
class SourceFile:
    """A file to read. `partitions`: hive columns from its folders' names (COL=VALUE)."""

    path: str
    partitions: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True)
class Member:
    """One table's bytes, unpacked; `name` is the path, with `!member` for a zip's members."""

    name: str
    format: Format
    data: bytes


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


def _expand(source: str) -> list[SourceFile]:
    if not source.strip():
        raise UsageError("a source is empty text: name a file, a glob or a directory")
    try:
        filesystem, root = url_to_fs(source)
        if filesystem.isfile(root):
            return [SourceFile(source)]
        is_folder = filesystem.isdir(root)
        if not is_folder and not re.search(r"[*?\[]", source):
            raise UsageError(f"no such source: {source}")
        if is_folder:
            base, listing = source.rstrip("/"), filesystem.find(root, detail=True)
            paths = [path for path, entry in listing.items() if entry.get("type") != "other"]
        else:
            base = re.split(r"[*?\[]", source, maxsplit=1)[0].rpartition("/")[0]
            root = url_to_fs(base or ".")[1] if base or not source.startswith("/") else ""
            paths = [path for path in filesystem.glob(url_to_fs(source)[1])
                     if filesystem.isfile(path)]  # fmt: skip
    except (ImportError, OSError, ValueError) as error:
        raise UsageError(f"source {source}: {error}") from None
    below = sorted(path[len(root.rstrip("/")) + 1 :] for path in paths)
    listed = [path for path in below if not _hidden(path)]
    if not listed:
        holds = "holds no file to read" if is_folder else "matches no file"
        raise UsageError(f"no such source: {source} {holds}")
    prefix = f"{base}/" if base or source.startswith("/") else ""
    return [SourceFile(prefix + path, _partitions(path)) for path in listed]


def _hidden(path: str) -> bool:
    return any(part.startswith((".", "_")) for part in path.split("/"))


def _partitions(path: str) -> tuple[tuple[str, str | None], ...]:
    pairs = [part.partition("=") for part in path.split("/")[:-1] if "=" in part]
    return tuple(
        (unquote(key), None if value == _NULL_PARTITION else unquote(value))
        for key, _, value in pairs
    )


def fingerprint(found: Sequence[SourceFile]) -> list[dict[str, Any]]:
    """Returns path, size in bytes and sha256 of each file."""
    return [_fingerprint(file.path) for file in found]


def _fingerprint(path: str) -> dict[str, Any]:
    digest, size = hashlib.sha256(), 0
    try:
        with files.open_binary(path) as stream:
            while chunk := stream.read(_MANY_BYTES):
                digest.update(chunk)
                size += len(chunk)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None
    return {"path": path, "bytes": size, "sha256": digest.hexdigest()}


def members(path: str, *, any_text: bool = False) -> Iterator[Member]:
    """Yields the tables in a file, unpacked.

    Args:
      path: the file.
      any_text: read a file of unknown suffix as CSV (somebody said what its delimiter is).

    Raises:
      UsageError: a format that is not read, or damaged compression.
    """
    with files.open_binary(path) as stream:
        data = stream.read()
    for name, content in _unpack(path, data):
        yield Member(name, _format(name, content, any_text), content)


def _unpack(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    _refuse_other_formats(name)
    for magic, kind in _OTHER_COMPRESSION.items():
        if data.startswith(magic):
            raise UsageError(f"{name} is compressed with {kind}: use gzip or zip")
    if data.startswith(b"\x1f\x8b"):
        try:
            content = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise UsageError(f"{name} is damaged or cut off ({error}): copy it again") from None
        yield from _unpack(re.sub(r"\.gz$", "", name), content)
    elif data.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        yield from _unzip(name, data)
    else:
        yield name, data


def _unzip(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            inside = sorted(
                entry.filename
                for entry in archive.infolist()
                if not entry.is_dir() and not _hidden(entry.filename)
            )
            for one, other in itertools.pairwise(inside):
                if one == other:
                    raise UsageError(f"{name} has two members called {one}: name them apart")
            if not inside:
                raise UsageError(f"{name} is an archive without files")
            for member in inside:
                yield from _unpack(f"{name}!{member}", archive.read(member))
    # RuntimeError: encrypted, or packed in a way that zipfile does not know.
    except (zipfile.BadZipFile, RuntimeError, zlib.error) as error:
        raise UsageError(f"{name} cannot be unpacked: {error}") from None


def _suffix(name: str) -> str:
    # ".csv.gz" may hold plain text: the bytes decided about that already.
    match = re.search(r"\.[^./!]*$", name.removesuffix(".gz"))
    return match[0].lower() if match else ""


def _refuse_other_formats(name: str) -> None:
    if _suffix(name) in _NOT_TABLES:
        raise UsageError(
            f"{name}: {_suffix(name)} is not a format that is read (.csv, .tsv, .parquet, also "
            "inside .gz and .zip)"
        )


def _format(name: str, data: bytes, any_text: bool) -> Format:
    suffix = _suffix(name)
    if data.startswith(b"PAR1"):
        return "parquet"
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    if any_text:
        return "csv"
    raise UsageError(
        f"{name}: {suffix or 'no suffix'} does not say what the file is (.csv, .tsv, .parquet, "
        "also inside .gz and .zip): name the files with a glob, or read it as delimited text with "
        "--delimiter ','"
    )
