"""Which format a file has: by its first bytes where they say it, else by its name."""

from __future__ import annotations

import re
import struct

from components.shard_data.formats import Format
from trainer.data.records import masked_crc
from trainer.errors import UsageError

_SUFFIXES: dict[str, Format] = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl",
    ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".arrows": "arrow",
    ".feather": "arrow", ".ipc": "arrow", ".tfrecord": "tfrecord", ".tfrecords": "tfrecord",
}  # fmt: skip
_NOT_READ = {".json", ".orc", ".avro", ".xls", ".xlsx", ".npy", ".npz", ".pdf"}
_IMAGES = {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".gif", ".bmp", ".dib"}
_MAGIC: dict[bytes, Format] = {b"PAR1": "parquet", b"ARROW1": "arrow", b"FEA1": "arrow"}
HEAD_BYTES = 12
_CRC = struct.Struct("<I")
_COMPRESSED = (".gz", ".bz2", ".zst", ".xz")
_READ = (
    ".csv, .tsv, .jsonl, .parquet, .arrow, .feather, .tfrecord, also inside .gz, .bz2, .zst, .xz "
    "and .zip"
)


def refuse_others(name: str) -> None:
    """Raises UsageError if the name is that of a format that is not read."""
    suffix = _suffix(name)
    if suffix in _NOT_READ:
        more = "; one object a line is .jsonl" if suffix == ".json" else ""
        raise UsageError(f"{name}: {suffix} is not a format that is read ({_READ}{more})")


def is_image(name: str) -> bool:
    """Whether a name says that a file is an image."""
    return _suffix(name) in _IMAGES


def is_table(name: str) -> bool:
    """Whether a name says that a file is a table."""
    return _suffix(name) in _SUFFIXES or is_called_records(name)


def format_of(name: str, head: bytes, *, any_text: bool) -> Format:
    """Returns the format of a file.

    Args:
      name: may end in the suffix of a compression that it no longer has.
      head: its first bytes, unpacked.
      any_text: a file of unknown suffix is CSV (somebody said what its delimiter is).

    Raises:
      UsageError: nothing tells.
    """
    for magic, kind in _MAGIC.items():
        if head.startswith(magic):
            return kind
    if is_record(head):
        return "tfrecord"
    suffix = _suffix(name)
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    if is_called_records(name):
        return "tfrecord"
    if any_text:
        return "csv"
    raise UsageError(
        f"{name}: {suffix or 'no suffix'} does not say what the file is ({_READ}): name the files "
        "with a glob, or read it as delimited text with --delimiter ','"
    )


def is_record(head: bytes) -> bool:
    """Whether a file begins with a TFRecord's length and the checksum of that."""
    return len(head) >= HEAD_BYTES and _CRC.pack(masked_crc(head[:8])) == head[8:HEAD_BYTES]


def is_called_records(name: str) -> bool:
    """Whether a name says TFRecord somewhere, as in `train.tfrecord-00000-of-00010`."""
    return "tfrecord" in name.rpartition("/")[2].lower()


def _suffix(name: str) -> str:
    for compressed in _COMPRESSED:
        name = name.removesuffix(compressed)
    match = re.search(r"\.[^./!]*$", name)
    return match[0].lower() if match else ""
