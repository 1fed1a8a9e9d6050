"""Where records of delimited text end, with line breaks inside of quotes told apart.

A quote opens a field only where a field begins; any other one outside of quotes is a letter. Where
every quote stands as RFC 4180 has it, counting them is enough, and numpy counts; elsewhere a
regular expression takes one quoted field after another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

_QUOTE, _LF, _CR = b'"\n\r'
Positions = npt.NDArray[np.int64]


def last_end(text: bytes, delimiter: str) -> int:
    r"""Returns the offset behind the last record that surely ends in `text`, 0 if none does.

    Args:
      text: begins where a record begins.
      delimiter: one ASCII character.

    A CR at the very end does not count: a LF may follow.
    """
    quoted = _quoted(text, delimiter)
    ends = _last_outside(text, b"\n", quoted)
    return ends or _last_outside(text[:-1], b"\r", quoted)


def opened(text: bytes, delimiter: str) -> int | None:
    """Returns the offset of the quote that nothing closes, or None; `text` is all up to the end."""
    quoted = _quoted(text, delimiter)
    if not len(quoted) or quoted[-1, 1] != len(text) + 1:
        return None
    last = len(quoted) - 1
    while last and quoted[last - 1, 1] == quoted[last, 0]:
        last -= 1
    return int(quoted[last, 0])


def _last_outside(text: bytes, end: bytes, quoted: Positions) -> int:
    """Returns the offset behind the last `end` outside of quoted spans, 0 if there is none."""
    limit = len(text)
    for i in range(len(quoted) - 1, -1, -1):
        begin, close = int(quoted[i, 0]), min(int(quoted[i, 1]), limit)
        found = text.rfind(end, close, limit)
        if found >= 0:
            return found + 1
        limit = min(limit, begin)
    return text.rfind(end, 0, limit) + 1


def _quoted(text: bytes, delimiter: str) -> Positions:
    """Returns int64 [n, 2]: quoted spans, each from its quote to behind the closing one.

    A span that nothing closes ends at `len(text) + 1`. Doubled quotes may part a span in two that
    touch.
    """
    if b'"' not in text:
        return np.zeros((0, 2), np.int64)
    data = np.frombuffer(text, np.uint8)
    at = np.flatnonzero(data == _QUOTE)
    if _regular(data, at, ord(delimiter)):
        closes = at[1::2] + 1
        if len(at) % 2:
            closes = np.append(closes, len(text) + 1)
        return np.stack([at[::2], closes], axis=1)
    spans = list(_spans(text, delimiter))
    return np.array(spans, np.int64).reshape(-1, 2)


def _regular(data: npt.NDArray[np.uint8], at: Positions, delimiter: int) -> bool:
    """Whether quotes open and close in turn: then each second one opens."""
    beside = np.array([delimiter, _LF, _CR, _QUOTE], np.uint8)
    opening, closing = at[::2], at[1::2]
    before = data[opening[opening > 0] - 1]
    after = data[closing[closing < len(data) - 1] + 1]
    return bool(np.isin(before, beside).all() and np.isin(after, beside).all())


def _spans(text: bytes, delimiter: str) -> Iterator[tuple[int, int]]:
    begins = rb"(?<![^\r\n" + re.escape(delimiter.encode()) + rb"])"
    for match in re.finditer(begins + rb'"[^"]*+(?:""[^"]*+)*+("?)', text):
        yield match.start(), match.end() if match[1] else len(text) + 1
