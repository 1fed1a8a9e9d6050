"""Layout `rows`: one standard tf.train.Example a row, keys sorted, null = feature absent.

The bytes are those of protobuf's deterministic serialization, made column by column. A message is
its content behind a prefix that depends on the content's size alone, so a prefix is made once for
each size, and arrow joins the pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from trainer.data.blocks import NULL_INT, Column, missing
from trainer.data.manifest import Feature

# Tags of a length-delimited field: number << 3 | 2.
_FIRST, _SECOND = b"\x0a", b"\x12"
_KINDS = {"string": b"\x0a", "float32": b"\x12", "int64": b"\x1a"}
_BYTES = pa.large_binary()
_NOTHING = pa.scalar(b"", _BYTES)
_FLOAT_BYTES = 4
# Sizes below are looked up in a table; whole numbers of no wider range, too.
_MOST_SIZES = 1 << 16
_WIDEST_TABLE = 1 << 16
# An integer's variable-length form has seven bits a byte.
Sizes = npt.NDArray[np.int64]
_SEVEN = np.uint64(7)
_LOW = np.uint64(0x7F)
_MORE = np.uint8(0x80)


@dataclass(frozen=True)
class Encoded:
    """Examples of n rows, before their pieces are joined.

    parts: arrays [n] of bytes that stand one after another in each row. sizes: int64 [n], of all.
    """

    parts: tuple[pa.Array, ...]
    sizes: Sizes

    def join(self) -> pa.Array:
        """Returns large_binary [n]."""
        return joined(self.parts)


def encode(features: Sequence[Feature], columns: Mapping[str, Column], rows: int) -> Encoded:
    """Returns the serialized Examples of `rows` rows; every column has that many."""
    parts: list[pa.Array] = []
    sizes = np.zeros(rows, np.int64)
    for feature in sorted(features, key=lambda feature: feature.name):
        entry = _entries(feature, columns[feature.name])
        parts += entry.parts
        sizes += entry.sizes
    return _after(partial(_field, _FIRST), Encoded(tuple(parts), sizes))


def by_size(sizes: Sizes, made: Callable[[int], bytes]) -> Encoded:
    """Returns what `made` says of each size [n]."""
    if sizes.max(initial=0) < _MOST_SIZES:
        there = np.flatnonzero(np.bincount(sizes))
        place = np.zeros(_MOST_SIZES, np.int64)
        place[there] = np.arange(len(there))
        which = place[sizes]
    else:
        there, which = np.unique(sizes, return_inverse=True)
    return _picked([made(int(size)) for size in there], which)


def _picked(choices: Sequence[bytes], which: npt.NDArray[np.int64]) -> Encoded:
    lengths = np.array([len(choice) for choice in choices], np.int64)
    array = pa.array(choices, _BYTES).take(pa.array(which))
    return Encoded((array,), lengths[which] if len(choices) else lengths)


def _after(prefix: Callable[[int], bytes], contents: Encoded) -> Encoded:
    """Returns contents, each behind what `prefix` says of its size."""
    before = by_size(contents.sizes, prefix)
    return Encoded((*before.parts, *contents.parts), before.sizes + contents.sizes)


def joined(parts: Sequence[pa.Array]) -> pa.Array:
    """Returns the parts [n] of each row as one."""
    return pc.binary_join_element_wise(*parts, _NOTHING)


def varint(value: int) -> bytes:
    """Returns protobuf's variable-length form of a whole number that is not negative."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(tag: bytes, size: int) -> bytes:
    return tag + varint(size)


def _value(size: int) -> bytes:
    """Before the values of a list, packed or one text; a list of nothing has none."""
    return _field(_FIRST, size)


def _prefix(feature: Feature, size: int) -> bytes:
    """Entry { key, Feature { list { values } } }, up to the values of that size."""
    name = feature.name.encode()
    key = _field(_FIRST, len(name)) + name
    inner = _field(_KINDS[feature.dtype], size)
    value = _field(_SECOND, len(inner) + size) + inner
    return _field(_FIRST, len(key) + len(value) + size) + key + value


def _entries(feature: Feature, column: Column) -> Encoded:
    """Returns each row's entry of `map<string, Feature>`, empty where it is null."""
    absent = missing(feature, column)
    few = _few(feature, column.values)
    if few is not None:
        distinct, which = few
        choices = _after(partial(_prefix, feature), _after(_value, distinct)).join().to_pylist()
        return _picked([*choices, b""], np.where(absent, len(choices), which))
    whole = _after(partial(_prefix, feature), _lists(feature, column))
    if not absent.any():
        return whole
    null = pa.array(absent)
    kept = tuple(pc.if_else(null, _NOTHING, part) for part in whole.parts)
    return Encoded(kept, np.where(absent, 0, whole.sizes))


def _few(
    feature: Feature, values: npt.NDArray[Any]
) -> tuple[Encoded, npt.NDArray[np.int64]] | None:
    """Returns the different values of a scalar column and each row's, if they are few."""
    if feature.dictionary is not None:
        words = [word.encode() for word in feature.dictionary]
        return _picked(words, np.arange(len(words))), values.astype(np.int64)
    if feature.shape or feature.dtype != "int64":
        return None
    present = values[values != NULL_INT]
    low = int(present.min(initial=0))
    span = int(present.max(initial=0)) - low + 1
    if span > _WIDEST_TABLE:
        return None
    places = np.where(values == NULL_INT, 0, values - low)
    there = np.flatnonzero(np.bincount(places, minlength=1))
    number = np.zeros(span, np.int64)
    number[there] = np.arange(len(there))
    return _varints(there + low), number[places]


def _lists(feature: Feature, column: Column) -> Encoded:
    """Returns the content of each row's BytesList, FloatList or Int64List."""
    values = column.values
    if not feature.shape:
        return _after(_value, _raw(feature, values))
    splits = column.splits
    if splits is None:
        size = values.shape[1]
        splits = np.arange(len(values) + 1, dtype=np.int64) * size
        values = values.ravel()
    flat = _raw(feature, values)
    if feature.dtype == "string":
        return _by_row(_after(_value, flat), splits)
    return _after(lambda size: _value(size) if size else b"", _by_row(flat, splits))


def _by_row(flat: Encoded, splits: npt.NDArray[np.int64]) -> Encoded:
    lists = pa.LargeListArray.from_arrays(pa.array(splits), flat.join())
    whole = pc.binary_join(lists, _NOTHING)
    ends = np.concatenate(([0], np.cumsum(flat.sizes)))
    return Encoded((whole,), np.diff(ends[splits]))


def _raw(feature: Feature, values: npt.NDArray[Any]) -> Encoded:
    """Returns values [n], each as the bytes that it has in a list."""
    if feature.dtype == "string":
        array = pa.array(values, _BYTES)
        return Encoded((array,), pc.binary_length(array).to_numpy(zero_copy_only=False))
    if feature.dtype == "float32":
        data = np.ascontiguousarray(values, "<f4")
        return _cut(np.full(len(values), _FLOAT_BYTES), data.tobytes())
    return _varints(values)


def _varints(values: npt.NDArray[np.int64]) -> Encoded:
    rest = np.ascontiguousarray(values).view(np.uint64)
    lengths = np.ones(len(rest), np.int64)
    groups = []
    while True:
        groups.append((rest & _LOW).astype(np.uint8))
        rest = rest >> _SEVEN
        if not rest.any():
            break
        lengths += rest > 0
    table = np.stack(groups, axis=1)
    places = np.arange(len(groups))
    table |= np.where(places < (lengths - 1)[:, None], _MORE, np.uint8(0))
    return _cut(lengths, table[places < lengths[:, None]].tobytes())


def _cut(lengths: npt.NDArray[np.int64], data: bytes) -> Encoded:
    """Returns data as pieces of these lengths [n]."""
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype("<i8")
    buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(data)]
    return Encoded((pa.LargeBinaryArray.from_buffers(_BYTES, len(lengths), buffers),), lengths)
