"""Layout `rows`: one standard tf.train.Example a row, keys sorted, null = feature absent.

The bytes are those of protobuf's deterministic serialization, made column by column: each distinct
value is encoded once, and a row is the join of its columns' pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from trainer.data.blocks import Column, missing
from trainer.data.manifest import Feature

# Tags of a length-delimited field: number << 3 | 2.
_FIRST, _SECOND = b"\x0a", b"\x12"
_KINDS = {"string": b"\x0a", "float32": b"\x12", "int64": b"\x1a"}
_ONE_BYTE = [bytes([value]) for value in range(0x80)]
Values = npt.NDArray[Any]


def encode(features: Sequence[Feature], columns: Mapping[str, Column], rows: int) -> list[bytes]:
    """Returns the serialized Examples of `rows` rows; every column has that many."""
    ordered = sorted(features, key=lambda feature: feature.name)
    pieces = [_pieces(feature, columns[feature.name]) for feature in ordered]
    if not pieces:
        return [b""] * rows
    return [_field(_FIRST, b"".join(row)) for row in zip(*pieces, strict=True)]


def _pieces(feature: Feature, column: Column) -> Sequence[bytes]:
    """Returns each row's map entry, empty where it is null."""
    absent = missing(feature, column)
    if feature.shape:
        return [
            b"" if null else _entry(feature, values)
            for values, null in zip(_lists(column), absent, strict=True)
        ]
    if column.values.dtype == object:  # Text of many values: few are there twice.
        return [
            b"" if null else _entry(feature, column.values[i : i + 1])
            for i, null in enumerate(absent.tolist())
        ]
    distinct, which = np.unique(column.values, return_inverse=True)
    encoded = np.empty(len(distinct), object)
    encoded[:] = [_entry(feature, distinct[i : i + 1]) for i in range(len(distinct))]
    whole = encoded[which]
    whole[absent] = b""
    return list(whole)


def _lists(column: Column) -> list[Values]:
    if column.splits is None:
        return list(column.values)
    return np.split(column.values, column.splits[1:-1])


def _entry(feature: Feature, values: Values) -> bytes:
    """One entry of `map<string, Feature>` with a list of values."""
    payload = _PAYLOADS[feature.dtype](feature, values)
    value = _field(_KINDS[feature.dtype], payload)
    key = _field(_FIRST, feature.name.encode())
    return _field(_FIRST, key + _field(_SECOND, value))


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


def _strings(feature: Feature, values: Values) -> bytes:
    if feature.dictionary is None:
        return b"".join(_field(_FIRST, value) for value in values.tolist())
    # A null's code is -1: it picks some word, and the row's entry is dropped afterwards.
    return b"".join(_field(_FIRST, feature.dictionary[code].encode()) for code in values.tolist())


def _floats(feature: Feature, values: Values) -> bytes:
    return _packed(np.ascontiguousarray(values, "<f4").tobytes())


def _integers(feature: Feature, values: Values) -> bytes:
    return _packed(b"".join(varint(value) for value in values.tolist()))


def _packed(payload: bytes) -> bytes:
    return _field(_FIRST, payload) if payload else b""


_PAYLOADS: dict[str, Callable[[Feature, Values], bytes]] = {
    "string": _strings,
    "float32": _floats,
    "int64": _integers,
}
