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
    comments = _Comments(comment.encode(), delimiter)
    for stretch in lines.whole(_without_bom(chunks)):
        head = b""
        if skip_rows:
            skipped = list(itertools.islice(lines.split([stretch]), skip_rows))
            skip_rows -= len(skipped)
            head = b"".join(skipped)
        yield head + comments.blanked(stretch[len(head) :], head)


class _Comments:
    """Blanks comments, one stretch of lines after another."""

    def __init__(self, sign: bytes, delimiter: str) -> None:
        self._sign = sign
        self._delimiter = delimiter
        self._pattern = re.compile(rb"(?<![^\r\n])" + re.escape(sign) + rb"[^\r\n]*")
        self._inside = False
        self._last = b""

    def blanked(self, text: bytes, before: bytes) -> bytes:
        """Returns lines, blanked; `before` are lines before them that never are."""
        self._last = before or self._last
        if self._is_odd(text):
            text = b"".join(self._one_by_one(text))
        elif not self._inside and self._sign in text:
            text = self._pattern.sub(b"", text)
        self._last = text or self._last
        return text

    def _is_odd(self, text: bytes) -> bool:
        """Whether quotes may decide what a comment is, or a CR before it what it leaves."""
        if b'"' in text:
            return True
        text = self._last[-1:] + text
        return text.startswith(b"\r\n") or b"\r" + self._sign in text

    def _one_by_one(self, text: bytes) -> Iterator[bytes]:
        for line in lines.split([text]):
            out = line
            if not self._inside and line.startswith(self._sign):
                out = self._pattern.sub(b"", line, count=1)
            elif b'"' in line:
                before = b'"' if self._inside else b""
                self._inside = quotes.opened(before + line, self._delimiter) is not None
            # A LF that is left of a comment must not become one with the CR before it.
            self._last = b"\r" if out == b"\n" and self._last.endswith(b"\r") else out
            yield self._last


def _without_bom(chunks: Iterable[bytes]) -> Iterator[bytes]:
    every = iter(chunks)
    head = b""
    while len(head) < len(codecs.BOM_UTF8) and (chunk := next(every, b"")):
        head += chunk
    yield head.removeprefix(codecs.BOM_UTF8)
    yield from every
