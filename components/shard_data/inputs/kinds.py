"""Which format a file has: by its first bytes where they say it, else by its name."""

from __future__ import annotations

import re

from components.shard_data.formats import Format
from trainer.errors import UsageError

_SUFFIXES: dict[str, Format] = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".parquet": "parquet", ".pq": "parquet",
}  # fmt: skip
_NOT_READ = {
    ".json", ".jsonl", ".ndjson", ".arrow", ".feather", ".ipc", ".orc", ".avro", ".tfrecord",
    ".tfrecords", ".xls", ".xlsx", ".jpg", ".jpeg", ".png", ".gif", ".bmp", ".npy", ".npz", ".pdf",
}  # fmt: skip
_COMPRESSED = (".gz", ".bz2", ".zst", ".xz")
_READ = ".csv, .tsv, .parquet, also inside .gz, .bz2, .zst, .xz and .zip"


def refuse_others(name: str) -> None:
    """Raises UsageError if the name is that of a format that is not read."""
    suffix = _suffix(name)
    if suffix in _NOT_READ:
        raise UsageError(f"{name}: {suffix} is not a format that is read ({_READ})")


def format_of(name: str, head: bytes, *, any_text: bool) -> Format:
    """Returns the format of a file.

    Args:
      name: may end in the suffix of a compression that it no longer has.
      head: its first bytes, unpacked.
      any_text: a file of unknown suffix is CSV (somebody said what its delimiter is).

    Raises:
      UsageError: nothing tells.
    """
    suffix = _suffix(name)
    if head.startswith(b"PAR1"):
        return "parquet"
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    if any_text:
        return "csv"
    raise UsageError(
        f"{name}: {suffix or 'no suffix'} does not say what the file is ({_READ}): name the files "
        "with a glob, or read it as delimited text with --delimiter ','"
    )


def _suffix(name: str) -> str:
    for compressed in _COMPRESSED:
        name = name.removesuffix(compressed)
    match = re.search(r"\.[^./!]*$", name)
    return match[0].lower() if match else ""
