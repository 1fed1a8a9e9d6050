"""Bytes as UTF-8 text, and the error where they are none."""

from __future__ import annotations

import codecs
import struct

import pyarrow as pa

from components.shard_data.formats import lines
from trainer.errors import UsageError


def is_utf8(text: bytes) -> bool:
    """Whether bytes are UTF-8; they are not copied."""
    data = pa.py_buffer(text)
    ends = pa.py_buffer(struct.pack("<qq", 0, data.size))
    try:
        pa.Array.from_buffers(pa.large_string(), 1, [None, ends, data]).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def decoded(name: str, text: bytes, line: int) -> str:
    """Returns the characters of bytes that begin in a line of a file.

    Raises:
      UsageError: at bytes that are not UTF-8, with their line.
    """
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        wide = line == 1 and text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        raise UsageError(
            f"{name}, line {line + lines.breaks(text[: error.start])}: byte "
            f"0x{text[error.start]:02x} is not utf-8: say how the file is written, as in "
            f"--encoding {'utf-16' if wide else 'latin-1'}"
        ) from None
