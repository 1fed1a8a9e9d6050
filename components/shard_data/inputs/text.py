"""Text that cannot be read as it lies: another encoding than UTF-8, or lines of comment.

Both are rewritten as a stream; a comment leaves its line empty, so that lines keep their numbers.
"""

from __future__ import annotations

import codecs
import itertools
import re
from collections.abc import Iterable, Iterator

from components.shard_data.formats import lines, quotes
from trainer.errors import UsageError


def to_utf8(name: str, chunks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Yields a text of another encoding as UTF-8.

    Raises:
      UsageError: at bytes that are not of that encoding, with their line.
    """
    try:
        decoder = codecs.getincrementaldecoder(encoding)()
    except LookupError:
        raise UsageError(f"--encoding {encoding}: not one that a file can be read in") from None
    line = 1
    for chunk in itertools.chain(chunks, [b""]):
        state = decoder.getstate()
        try:
            text = decoder.decode(chunk, final=not chunk).encode()
        except UnicodeDecodeError as error:
            decoder.setstate(state)
            good = decoder.decode(error.object[len(state[0]) : error.start])
            at = line + lines.breaks(good.encode("utf-8", "replace"))
            raise UsageError(
                f"{name}, line {at}: byte 0x{error.object[error.start]:02x} is not {encoding}: say "
                "how the file is written with another --encoding"
            ) from None
        except UnicodeError as error:  # a half of a pair; or an encoding that says less: idna
            raise UsageError(f"{name} is not {encoding}: {error}") from None
        line += lines.breaks(text)
        yield text


def without_comments(
    chunks: Iterable[bytes], comment: str, skip_rows: int, delimiter: str
) -> Iterator[bytes]:
    """Yields a text in which lines that begin with `comment` are empty.

    A line within a quoted field is none, nor are the first `skip_rows` lines.
    """
    sign = comment.encode()
    pattern = re.compile(re.escape(sign) + rb"[^\r\n]*")
    all_lines = lines.split(_without_bom(chunks))
    out, inside = b"", False
    for out in itertools.islice(all_lines, skip_rows):
        yield out
    for line in all_lines:
        if not inside and line.startswith(sign):
            rest = pattern.sub(b"", line, count=1)
            # A LF that is left of a comment must not become one with the CR before it.
            out = b"\r" if out.endswith(b"\r") and rest == b"\n" else rest
        else:
            out = line
            if b'"' in line:
                before = b'"' if inside else b""
                inside = quotes.opened(before + line, delimiter) is not None
        yield out


def _without_bom(chunks: Iterable[bytes]) -> Iterator[bytes]:
    every = iter(chunks)
    head = b""
    while len(head) < len(codecs.BOM_UTF8) and (chunk := next(every, b"")):
        head += chunk
    yield head.removeprefix(codecs.BOM_UTF8)
    yield from every
