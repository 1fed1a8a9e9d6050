"""Layout `rows`: one standard tf.train.Example a row, keys sorted, null = feature absent.

The bytes are those of protobuf's deterministic serialization, made column by column: each distinct
value is encoded once, and a row is the join of its columns' pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from components.shard_data.series import Series

# Tags of a length-delimited field: number << 3 | 2.
_FIRST, _SECOND = b"\x0a", b"\x12"
_KINDS = {"string": b"\x0a", "float32": b"\x12", "int64": b"\x1a"}
_ONE_BYTE = [bytes([value]) for value in range(0x80)]
Values = npt.NDArray[Any]


def encode(columns: Mapping[str, Series], rows: int) -> list[bytes]:
    """Returns the serialized Examples of `rows` rows; every series has that many."""
    pieces = [_pieces(columns[name]) for name in sorted(columns)]
    if not pieces:
        return [b""] * rows
    return [_field(_FIRST, b"".join(row)) for row in zip(*pieces, strict=True)]


def _pieces(series: Series) -> Sequence[bytes]:
    """Returns each row's map entry, empty where it is null."""
    missing = series.missing
    if series.shape:
        lists = _lists(series)
        return [
            b"" if null else _entry(series, values)
            for values, null in zip(lists, missing, strict=True)
        ]
    values = series.column.values
    distinct, which = np.unique(values, return_inverse=True)
    encoded = np.empty(len(distinct), object)
    encoded[:] = [_entry(series, distinct[i : i + 1]) for i in range(len(distinct))]
    whole = encoded[which]
    whole[missing] = b""
    return list(whole)


def _lists(series: Series) -> list[Values]:
    column = series.column
    if column.splits is None:
        return list(column.values)
    return np.split(column.values, column.splits[1:-1])


def _entry(series: Series, values: Values) -> bytes:
    """One entry of `map<string, Feature>` with a list of values."""
    payload = _PAYLOADS[series.dtype](series, values)
    feature = _field(_KINDS[series.dtype], payload)
    key = _field(_FIRST, series.name.encode())
    return _field(_FIRST, key + _field(_SECOND, feature))


def _field(tag: bytes, payload: bytes) -> bytes:
    return tag + varint(len(payload)) + payload


def varint(value: int) -> bytes:
    """Returns protobuf's variable-length form of an integer; negative ones take ten bytes."""
    if 0 <= value < 0x80:
        return _ONE_BYTE[value]
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _strings(series: Series, codes: Values) -> bytes:
    if series.words is None:
        raise TypeError(f"text column {series.name} without words")
    # A null's code is -1: it picks some word, and the row's entry is dropped afterwards.
    return b"".join(_field(_FIRST, series.words[code]) for code in codes.tolist())


def _floats(series: Series, values: Values) -> bytes:
    return _packed(np.ascontiguousarray(values, "<f4").tobytes())


def _integers(series: Series, values: Values) -> bytes:
    return _packed(b"".join(varint(value) for value in values.tolist()))


def _packed(payload: bytes) -> bytes:
    return _field(_FIRST, payload) if payload else b""


_PAYLOADS: dict[str, Callable[[Series, Values], bytes]] = {
    "string": _strings,
    "float32": _floats,
    "int64": _integers,
}
