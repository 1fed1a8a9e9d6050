"""JSON lines one by one: what is wrong with a line, and kinds of values that do not go together.

Python's own parser reads; it keeps whole numbers of any length.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from components.shard_data.findings import flag
from components.shard_data.formats import lines
from components.shard_data.formats.piece import Columns, Piece, Read, Rejected, too_many
from components.shard_data.formats.text import decoded
from components.shard_data.options import ShardOptions
from trainer.errors import UsageError

# Beyond it a float does not hold every whole number.
_EXACT = 1 << 53
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_LONGEST_SHOWN = 40
_WORDS: dict[type, str] = {str: "text", int: "a number", float: "a number", bool: "true or false",
                           list: "a list", dict: "an object"}  # fmt: skip
_KINDS: dict[type, pa.DataType] = {int: pa.int64(), float: pa.float64(), str: pa.string(),
                                   bool: pa.bool_()}  # fmt: skip


class _Fault(ValueError):
    """What is wrong with a row."""


def read(piece: Piece, text: bytes, options: ShardOptions) -> Read:
    """Returns the rows of a piece's text.

    Raises:
      UsageError: as `jsonl.read`.
    """
    before = _lines_before(piece)
    numbers: list[int] = []
    rows: list[dict[str, Any]] = []
    rejected: list[Rejected] = []
    for row, (number, line) in enumerate(numbered(text)):
        try:
            rows.append(_row(decoded(piece.name, line, before + number)))
            numbers.append(before + number)
        except _Fault as fault:
            rejected.append(Rejected(row, str(fault)))
            if len(rejected) > options.max_bad_rows:
                where = f"{piece.name}, line {before + number}"
                raise too_many(where, rejected[-1]) from None
    total = len(rows) + len(rejected)
    left_out = set(options.drop) - set(options.split_columns)
    kept = np.delete(np.arange(total, dtype=np.int64), [bad.row for bad in rejected])
    columns = _Columns(piece.name, numbers, left_out).of(rows)
    return Read(columns, typed=True, rows=total, kept=kept, rejected=tuple(rejected))


def numbered(text: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields (number from 1, line) of the lines that are not blank."""
    for number, line in enumerate(text.split(b"\n"), 1):
        if line.strip(b" \t\r"):
            yield number, line


def _lines_before(piece: Piece) -> int:
    with open(piece.path, "rb") as file:
        return lines.feeds_before(file, piece.start)


def _row(line: str) -> dict[str, Any]:
    try:
        value = json.loads(line, object_pairs_hook=_object, parse_constant=_constant)
    except RecursionError:
        raise _Fault("nested too deep") from None
    except _Fault:
        raise
    except json.JSONDecodeError as error:
        raise _Fault(f"not JSON ({error.msg} at character {error.colno})") from None
    except ValueError as error:  # a number of thousands of digits
        raise _Fault(str(error)) from None
    if not isinstance(value, dict):
        raise _Fault(f"{_WORDS.get(type(value), 'null')}, not an object")
    if _SURROGATE.search(line):
        _refuse_half_pairs(value)
    row: dict[str, Any] = {}
    _flatten("", value, row)
    return row


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise _Fault(f"the key {twice!r} stands twice in one object")
    return found


def _constant(word: str) -> float | None:
    return None if word == "NaN" else float(word)


def _refuse_half_pairs(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise _Fault("half of a surrogate pair is no character") from None


def _flatten(prefix: str, value: dict[str, Any], row: dict[str, Any]) -> None:
    for key, inner in value.items():
        if not key:
            raise _Fault("a key is empty")
        name = prefix + key
        if isinstance(inner, dict):
            _flatten(f"{name}.", inner, row)
        elif name in row:
            raise _Fault(f"the key {name!r} stands twice in one object")
        else:
            row[name] = inner


class _Columns:
    """Makes arrays of rows; knows each row's line, for errors."""

    def __init__(self, name: str, numbers: list[int], left_out: Collection[str]) -> None:
        self._name = name
        self._numbers = numbers
        self._left_out = left_out

    def of(self, rows: list[dict[str, Any]]) -> Columns:
        """Returns a column for each key, in the order in which they come."""
        keys: dict[str, None] = {}
        for row in rows:
            keys.update(dict.fromkeys(row))
        columns = {key: self._column(key, [row.get(key) for row in rows]) for key in keys}
        for key in [key for key in keys if any(other.startswith(f"{key}.") for other in keys)]:
            self._be_object(key, columns.pop(key), rows)
        return columns

    def _be_object(self, key: str, values: pa.ChunkedArray, rows: list[dict[str, Any]]) -> None:
        """Refuses a key that is an object in some rows, if it is anything but null in others."""
        if values.null_count < len(values):
            scalar = next(row for row, cells in enumerate(rows) if cells.get(key) is not None)
            nested = next(
                row for row, cells in enumerate(rows) if any(c.startswith(f"{key}.") for c in cells)
            )
            raise UsageError(
                f"column {key} is {_WORDS[type(rows[scalar][key])]} ({self._at(scalar)}) and an "
                f"object ({self._at(nested)}): write one kind"
            )

    def _column(self, key: str, values: list[Any]) -> pa.ChunkedArray:
        if key in self._left_out:  # whatever it is
            return pa.chunked_array([pa.nulls(len(values))])
        kind = self._kind(key, list(enumerate(values)))
        return pa.chunked_array([pa.array(values, kind)])

    def _kind(self, key: str, cells: list[tuple[int, Any]]) -> pa.DataType:
        """Returns the type of cells, each with the number of its row."""
        types = {type(value) for _, value in cells} - {type(None)}
        if not types:
            return pa.null()
        if types <= {int, float}:
            return self._number(key, cells, types)
        if len(types) > 1:
            raise self._mixed(key, cells)
        (only,) = types
        if only is list:
            inner = [(row, item) for row, value in cells if value is not None for item in value]
            return pa.list_(self._kind(key, inner))
        if only is dict:
            row, _ = next(cell for cell in cells if cell[1] is not None)
            raise UsageError(
                f"column {key}: a list of objects ({self._at(row)}): only lists of one kind of "
                f"value are read; {flag('--drop', key)} leaves it out"
            )
        return _KINDS[only]

    def _number(self, key: str, cells: list[tuple[int, Any]], types: set[type]) -> pa.DataType:
        low, high = (-_EXACT, _EXACT) if float in types else (-(1 << 63), (1 << 63) - 1)
        for row, value in cells:
            if isinstance(value, int) and not low <= value <= high:
                why = "2^53, and other rows have fractions" if float in types else "int64"
                raise UsageError(
                    f"column {key}: {_shown(value)} ({self._at(row)}) is beyond {why}: write such "
                    "a column as text"
                )
        return pa.float64() if float in types else pa.int64()

    def _mixed(self, key: str, cells: list[tuple[int, Any]]) -> UsageError:
        there = [(row, value) for row, value in cells if value is not None]
        one_row, one = there[0]
        row, other = next(cell for cell in there if _WORDS[type(cell[1])] != _WORDS[type(one)])
        return UsageError(
            f"column {key} is {_WORDS[type(one)]} ({_shown(one)}, {self._at(one_row)}) and "
            f"{_WORDS[type(other)]} ({_shown(other)}, {self._at(row)}): write one kind"
        )

    def _at(self, row: int) -> str:
        return f"{self._name}, line {self._numbers[row]}"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…"
