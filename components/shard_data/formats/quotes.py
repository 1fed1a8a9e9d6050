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
    begins, ends = quoted(text, delimiter)
    return _last_outside(text, b"\n", begins, ends) or _last_outside(text[:-1], b"\r", begins, ends)


def opened(text: bytes, delimiter: str) -> int | None:
    """Returns the offset of the quote that nothing closes, or None; `text` is all up to the end."""
    begins, ends = quoted(text, delimiter)
    if not len(begins) or ends[-1] <= len(text):
        return None
    last = len(begins) - 1
    while last and ends[last - 1] == begins[last]:
        last -= 1
    return int(begins[last])


def quoted(text: bytes, delimiter: str) -> tuple[Positions, Positions]:
    """Returns where quoted spans begin and end: at the quotes, and behind the closing ones.

    A span that nothing closes ends at `len(text) + 1`. Doubled quotes may part a span in two that
    touch.
    """
    if b'"' not in text:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    data = np.frombuffer(text, np.uint8)
    at = np.flatnonzero(data == _QUOTE)
    if not _regular(data, at, delimiter):
        spans = np.array(list(spans_one_by_one(text, delimiter)), np.int64).reshape(-1, 2)
        return spans[:, 0], spans[:, 1]
    ends = at[1::2] + 1
    return at[::2], np.append(ends, len(text) + 1) if len(at) % 2 else ends


def spans_one_by_one(text: bytes, delimiter: str) -> Iterator[tuple[int, int]]:
    """Yields begin and end of quoted spans, as in `quoted`, whole ones."""
    begins = rb"(?<![^\r\n" + re.escape(delimiter.encode()) + rb"])"
    for match in re.finditer(begins + rb'"[^"]*+(?:""[^"]*+)*+("?)', text):
        yield match.start(), match.end() if match[1] else len(text) + 1


def _last_outside(text: bytes, end: bytes, begins: Positions, ends: Positions) -> int:
    """Returns the offset behind the last `end` outside of quoted spans, 0 if there is none."""
    limit = len(text)
    for i in range(len(begins) - 1, -1, -1):
        begin, close = int(begins[i]), min(int(ends[i]), limit)
        found = text.rfind(end, close, limit)
        if found >= 0:
            return found + 1
        limit = min(limit, begin)
    return text.rfind(end, 0, limit) + 1


def _regular(data: npt.NDArray[np.uint8], at: Positions, delimiter: str) -> bool:
    """Whether quotes open and close in turn: then each second one opens."""
    may_be_beside = np.zeros(256, bool)
    may_be_beside[[ord(delimiter), _LF, _CR, _QUOTE]] = True
    opening, closing = at[::2], at[1::2]
    before = data[opening[opening > 0] - 1]
    after = data[closing[closing < len(data) - 1] + 1]
    return bool(may_be_beside[before].all() and may_be_beside[after].all())
