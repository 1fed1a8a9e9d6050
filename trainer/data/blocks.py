"""The bytes of a block: up to `block_rows` rows, column-wise, in one tf.train.Example.

The only module that knows this layout; sharding writes and the trainer reads through it. A record
holds (n rows; everything little-endian):

    rows          int64_list [n]
    row_id        raw int64 [n]: the row's number in the source, over all source files in order
    float32       raw [n, F]: all float32 scalar columns side by side; null is NaN
    int64         raw [n, I]: all int64 scalar columns; null is 0 here and 0 in int64_valid
    int64_valid   raw uint8 [n, I]; only where an int64 scalar column is nullable
    code          raw int32 [n, C]: dictionary-coded string columns; null is -1
    bytes/X       bytes_list [n]: a string column without dictionary; null is empty
    fixed/X       raw [n, k]: a list column of fixed size k (strings: bytes_list [n * k])
    values/X      raw or bytes_list: the values of a variable-length list column, all rows
    splits/X      raw int64 [n + 1]: row i holds values[splits[i]:splits[i + 1]]
    valid/X       raw uint8 [n]; only where a column with keys of its own is nullable

In memory (`Block`) a null is a sentinel: NaN, `NULL_INT`, code -1, or the empty string; these are
also what a Task sees and what a served request passes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from trainer.data.example import Example
from trainer.data.manifest import Feature, Storage

Array = npt.NDArray[np.generic]

NULL_INT = int(np.iinfo(np.int64).min)
NULL_CODE = -1
PACKS: dict[str, np.dtype[Any]] = {
    "float32": np.dtype("<f4"),
    "int64": np.dtype("<i8"),
    "code": np.dtype("<i4"),
}


@dataclass(frozen=True)
class Column:
    """A column of n rows with null as a sentinel.

    values: [n] or [n, k]; float32, int64, int32 codes, or an object array of bytes. For a
    variable-length list the flat values, with `splits` int64 [n + 1]. `valid`: bool [n], only for
    columns with keys of their own that are nullable (lists).
    """

    values: Array
    splits: npt.NDArray[np.int64] | None = None
    valid: npt.NDArray[np.bool_] | None = None

    def take(self, indices: npt.NDArray[np.int64]) -> Column:
        """Returns the rows at `indices` [m], in that order."""
        valid = None if self.valid is None else self.valid[indices]
        if self.splits is None:
            return Column(self.values[indices], valid=valid)
        starts, ends = self.splits[indices], self.splits[indices + 1]
        lengths = ends - starts
        splits = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        flat = np.repeat(starts - splits[:-1], lengths) + np.arange(splits[-1])
        return Column(self.values[flat], splits, valid)

    def slice(self, start: int, end: int) -> Column:
        """Returns rows start..end, without copies."""
        valid = None if self.valid is None else self.valid[start:end]
        if self.splits is None:
            return Column(self.values[start:end], valid=valid)
        splits = self.splits[start : end + 1]
        return Column(self.values[splits[0] : splits[-1]], splits - splits[0], valid)


def missing(feature: Feature, column: Column) -> npt.NDArray[np.bool_]:
    """Returns bool [n]: which rows are null."""
    if feature.shape:
        if column.valid is not None:
            return ~column.valid
        rows = len(column.values) if column.splits is None else len(column.splits) - 1
        return np.zeros(rows, bool)
    values: npt.NDArray[Any] = column.values
    if feature.dictionary is not None:
        return np.asarray(values == NULL_CODE)
    if feature.dtype == "string":
        return np.asarray(values == b"")
    return np.isnan(values) if feature.dtype == "float32" else np.asarray(values == NULL_INT)


@dataclass(frozen=True)
class Block:
    """Decoded rows: `row_id` [n], `packs` (key -> [n, columns]) and `loose` columns by name."""

    row_id: npt.NDArray[np.int64]
    packs: dict[str, Array]
    loose: dict[str, Column] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Number of rows n."""
        return len(self.row_id)

    def take(self, indices: npt.NDArray[np.int64]) -> Block:
        """Returns the rows at `indices` [m], in that order."""
        return Block(
            self.row_id[indices],
            {key: np.take(pack, indices, axis=0) for key, pack in self.packs.items()},
            {name: column.take(indices) for name, column in self.loose.items()},
        )

    def slice(self, start: int, end: int) -> Block:
        """Returns rows start..end, without copies."""
        packs = {key: pack[start:end] for key, pack in self.packs.items()}
        end = min(end, self.rows)
        loose = {name: column.slice(start, end) for name, column in self.loose.items()}
        return Block(self.row_id[start:end], packs, loose)

    def column(self, feature: Feature) -> Column:
        """Returns one column, packed or loose."""
        storage = feature.storage
        if storage is not None and storage.kind == "packed":
            return Column(self.packs[storage.key][:, storage.index])
        return self.loose[feature.name]


def concat(blocks: Sequence[Block]) -> Block:
    """Returns the rows of all `blocks` (at least one, all of one dataset) one after another."""
    if len(blocks) == 1:
        return blocks[0]
    return Block(
        np.concatenate([b.row_id for b in blocks]),
        {key: np.concatenate([b.packs[key] for b in blocks]) for key in blocks[0].packs},
        {name: _concat_columns([b.loose[name] for b in blocks]) for name in blocks[0].loose},
    )


def dealt(blocks: Sequence[Block], steps: int) -> Block:
    """Returns the rows of equally long `blocks` (of lanes) in turns: a part of each, `steps` times.

    What `concat` and `take` would do with one gather more; packs are laid out by one copy.
    """
    rows = blocks[0].rows // steps

    def turns(arrays: Sequence[Array]) -> Array:
        parts = [array.reshape(steps, rows, *array.shape[1:]) for array in arrays]
        return np.stack(parts, axis=1).reshape(-1, *arrays[0].shape[1:])

    loose = {}
    if blocks[0].loose:
        order = turns(np.split(np.arange(len(blocks) * steps * rows), len(blocks)))
        for name in blocks[0].loose:
            column = _concat_columns([b.loose[name] for b in blocks])
            loose[name] = column.take(order.astype(np.int64))
    return Block(
        turns([b.row_id for b in blocks]).astype(np.int64, copy=False),
        {key: turns([b.packs[key] for b in blocks]) for key in blocks[0].packs},
        loose,
    )


def _concat_columns(columns: Sequence[Column]) -> Column:
    values = np.concatenate([c.values for c in columns])
    valid = None
    if columns[0].valid is not None:
        valid = np.concatenate([c.valid for c in columns if c.valid is not None])
    if columns[0].splits is None:
        return Column(values, valid=valid)
    lengths = np.concatenate([np.diff(c.splits) for c in columns if c.splits is not None])
    return Column(values, np.concatenate(([0], np.cumsum(lengths))).astype(np.int64), valid)


def plan_storage(features: Sequence[Feature]) -> tuple[Feature, ...]:
    """Returns the features with their place in a block record decided."""
    width = dict.fromkeys(PACKS, 0)
    planned = []
    for feature in features:
        key = "code" if feature.dictionary is not None else feature.dtype
        if feature.shape == () and key in PACKS:
            storage = Storage(kind="packed", key=key, index=width[key])
            width[key] += 1
        else:
            prefix = "values" if _ragged(feature) else "fixed" if feature.shape else "bytes"
            storage = Storage(kind="loose", key=f"{prefix}/{feature.name}")
        planned.append(feature.model_copy(update={"storage": storage}))
    return tuple(planned)


def _ragged(feature: Feature) -> bool:
    return None in feature.shape


def _packed(features: Sequence[Feature], key: str) -> list[Feature]:
    """The columns of one pack in their order."""
    return [
        f for f in features if f.storage and f.storage.kind == "packed" and f.storage.key == key
    ]


def pack(
    features: Sequence[Feature],
    columns: Mapping[str, Column],
    row_id: npt.NDArray[np.int64],
) -> Block:
    """Returns columns of n rows laid out as blocks hold them.

    Args:
      features: the manifest's columns, with storage planned.
      columns: each column's n rows, nulls as sentinels (object arrays of bytes for strings
        without dictionary, int32 codes for those with one).
      row_id: int64 [n].
    """
    packs: dict[str, Array] = {}
    for key, dtype in PACKS.items():
        members = _packed(features, key)
        if members:
            values = [columns[f.name].values for f in members]
            packs[key] = np.stack(values, axis=1).astype(dtype, copy=False)
    loose = {f.name: columns[f.name] for f in features if f.storage and f.storage.kind == "loose"}
    return Block(row_id, packs, loose)


def encode_block(features: Sequence[Feature], block: Block) -> bytes:
    """Returns the serialized record of the rows of `block`, which `pack` has laid out."""
    example = Example()
    put = example.features.feature
    put["rows"].int64_list.value.append(block.rows)

    def raw(key: str, values: Array, dtype: str) -> None:
        put[key].bytes_list.value.append(np.ascontiguousarray(values, dtype).tobytes())

    raw("row_id", block.row_id, "<i8")
    for key, values in block.packs.items():
        if key == "int64" and any(f.nullable for f in _packed(features, key)):
            valid = values != NULL_INT
            raw("int64_valid", valid, "u1")
            raw(key, np.where(valid, values, 0), PACKS[key].str)
        else:
            raw(key, values, PACKS[key].str)
    for feature in features:
        if feature.storage is None or feature.storage.kind == "packed":
            continue
        column = block.loose[feature.name]
        if feature.dtype == "string":
            put[feature.storage.key].bytes_list.value.extend(column.values.ravel().tolist())
        else:
            raw(feature.storage.key, column.values, PACKS[feature.dtype].str)
        if column.splits is not None:
            raw(f"splits/{feature.name}", column.splits, "<i8")
        if feature.nullable and column.valid is not None:
            raw(f"valid/{feature.name}", column.valid, "u1")
    # Map entries are written in key order: the same rows always make the same bytes.
    return bytes(example.SerializeToString(deterministic=True))


def decode_block(features: Sequence[Feature], payload: bytes) -> Block:
    """Returns the rows of one record, nulls as sentinels. Inverse of `encode_block`."""
    read = Example.FromString(payload).features.feature
    rows = read["rows"].int64_list.value[0]

    def raw(key: str, dtype: str) -> Array:
        return np.frombuffer(read[key].bytes_list.value[0], dtype)

    packs: dict[str, Array] = {}
    for key, dtype in PACKS.items():
        if key in read:
            packs[key] = raw(key, dtype.str).reshape(rows, -1)
    if "int64_valid" in read:
        valid = raw("int64_valid", "u1").reshape(rows, -1)
        packs["int64"] = np.where(valid, packs["int64"], NULL_INT)
    loose = {}
    for feature in features:
        if feature.storage is None or feature.storage.kind == "packed":
            continue
        if feature.dtype == "string":
            items = read[feature.storage.key].bytes_list.value
            values: Array = np.empty(len(items), object)
            values[:] = items
        else:
            values = raw(feature.storage.key, PACKS[feature.dtype].str)
        splits = None
        if _ragged(feature):
            splits = raw(f"splits/{feature.name}", "<i8").astype(np.int64)
        elif feature.shape:
            values = values.reshape((rows, *(size or 0 for size in feature.shape)))
        has_valid = f"valid/{feature.name}" in read
        loose_valid = raw(f"valid/{feature.name}", "u1").astype(bool) if has_valid else None
        loose[feature.name] = Column(values, splits, loose_valid)
    return Block(raw("row_id", "<i8").astype(np.int64), packs, loose)
