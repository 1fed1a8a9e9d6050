"""Lines of text as bytes; one ends in LF, CRLF or CR."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import BinaryIO

CHUNK_BYTES = 1 << 20
_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")


def breaks(text: bytes) -> int:
    """Returns how many lines end in `text`."""
    return text.count(b"\n") + text.count(b"\r") - text.count(b"\r\n")


def breaks_before(file: BinaryIO, end: int) -> int:
    """Returns how many lines end in a file's first `end` bytes; leaves the file there."""
    file.seek(0)
    count, after_cr = 0, False
    while end > 0 and (text := file.read(min(end, CHUNK_BYTES))):
        end -= len(text)
        count += breaks(text) - (after_cr and text.startswith(b"\n"))
        after_cr = text.endswith(b"\r")
    return count


def feeds_before(file: BinaryIO, end: int) -> int:
    """Returns how many LF a file's first `end` bytes hold; leaves the file there."""
    file.seek(0)
    count = 0
    while end > 0 and (text := file.read(min(end, CHUNK_BYTES))):
        end -= len(text)
        count += text.count(b"\n")
    return count


def whole(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yields the same bytes in stretches that end where a line ends."""
    held: list[bytes] = []
    for chunk in chunks:
        # After a CR at the very end, a LF may follow.
        end = max(chunk.rfind(b"\n"), chunk.rfind(b"\r", 0, -1)) + 1
        if end:
            yield b"".join((*held, chunk[:end]))
            held = []
        held.append(chunk[end:])
    if rest := b"".join(held):
        yield rest


def split(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yields lines with their ends."""
    for stretch in whole(chunks):
        yield from (match[0] for match in _LINE.finditer(stretch))


def chunks_of(file: BinaryIO) -> Iterator[bytes]:
    """Yields the bytes of a file from where it stands."""
    while chunk := file.read(CHUNK_BYTES):
        yield chunk
