"""Layout `rows`: one standard tf.train.Example a row, null = feature absent, read into blocks.

Anything reads these files; ours only needs them to train and to evaluate, slower than blocks. Such
records carry no row number: a row is known by its place in the split.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import islice
from math import prod
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from trainer.data import wire
from trainer.data.blocks import NULL_CODE, NULL_INT, Array, Block, Column
from trainer.data.example import Example
from trainer.data.manifest import Feature, Manifest, Shard
from trainer.data.records import DamagedRecord

_LISTS = {"float32": "float_list", "int64": "int64_list", "string": "bytes_list"}
_NULLS: dict[str, Any] = {"float32": np.nan, "int64": NULL_INT, "string": b""}
_DTYPES: dict[str, Any] = {"float32": np.float32, "int64": np.int64, "string": object}
# Enough that a NumPy call's own time does not matter, little enough for a cache.
ROWS_AT_ONCE = 4096


def decode_rows(
    manifest: Manifest, records: Iterable[bytes], shard: Shard, skip: int
) -> Iterator[Block]:
    """Yields blocks; `skip` blocks of `block_rows` rows stand before the first record.

    Raises:
      DamagedRecord: a record is no Example, or a column holds another type or number of values.
    """
    records = iter(records)
    inside = skip * manifest.block_rows
    before = _rows_before(manifest, shard)
    while payloads := list(islice(records, ROWS_AT_ONCE)):
        rows = Rows(payloads, manifest.features, inside)
        yield rows.block(before)
        inside += len(payloads)


def _rows_before(manifest: Manifest, shard: Shard) -> int:
    """Rows of the split that stand in earlier shards."""
    for split in manifest.splits.values():
        rows = 0
        for other in split.shards:
            if other.path == shard.path:
                return rows
            rows += other.rows
    raise KeyError(shard.path)


class Rows:
    """Serialized Examples, to be read as columns.

    first: the number of the first one in its file.
    """

    def __init__(self, payloads: Sequence[bytes], features: Sequence[Feature], first: int) -> None:
        self._payloads = payloads
        self._features = features
        self._first = first

    def block(self, before: int) -> Block:
        """Returns all columns; the rows are numbered from `before` + `first`."""
        packs: dict[str, list[Array]] = {}
        loose: dict[str, Column] = {}
        for feature in self._features:
            column = self.column(feature)
            if feature.storage is not None and feature.storage.kind == "packed":
                packs.setdefault(feature.storage.key, []).append(column.values)
            else:
                loose[feature.name] = column
        start = before + self._first
        row_id = np.arange(start, start + len(self._payloads), dtype=np.int64)
        return Block(row_id, {key: np.stack(pack, axis=1) for key, pack in packs.items()}, loose)

    def column(self, feature: Feature) -> Column:
        """Returns one column, null as a sentinel."""
        if None in feature.shape:
            return self._ragged(feature)
        found = self.fixed[feature.name]
        values = found.values
        if not found.there.all():
            values[~found.there] = _NULLS[feature.dtype]
        if feature.shape:
            shape = (len(values), *(n or 0 for n in feature.shape))
            return Column(values.reshape(shape), None, found.there if feature.nullable else None)
        if feature.dictionary is not None:
            code = _codes(feature.dictionary)
            codes = [code.get(word, NULL_CODE) for word in values[:, 0].tolist()]
            return Column(np.array(codes, np.int32))
        return Column(values[:, 0])

    @property
    def others(self) -> frozenset[str]:
        """The names in these records that are not among the features."""
        known = {f.name for f in self._features}
        if self._parsed is not None:
            return self._parsed.others - known
        return frozenset(name for example in self._examples for name in example) - known

    @cached_property
    def fixed(self) -> dict[str, wire.Found]:
        """The columns of a fixed size, as they were found."""
        if self._parsed is not None:
            return self._parsed.columns
        return {f.name: self._one_by_one(f) for f in self._features if None not in f.shape}

    @cached_property
    def _parsed(self) -> wire.Parsed | None:
        wanted = {
            f.name: wire.Wanted(f.dtype, _size(f)) for f in self._features if None not in f.shape
        }
        try:
            return wire.parse(self._payloads, wanted)
        except wire.Unusual:
            return None

    @cached_property
    def _examples(self) -> list[Any]:
        examples = []
        for number, payload in enumerate(self._payloads, self._first):
            try:
                examples.append(Example.FromString(payload).features.feature)
            except DecodeError:
                raise DamagedRecord(f"record {number} is no tf.train.Example") from None
        return examples

    def _lists(self, feature: Feature) -> list[list[Any]]:
        """Returns each row's values, none where it is null."""
        kind = _LISTS[feature.dtype]
        lists = []
        for number, example in enumerate(self._examples, self._first):
            values: list[Any] = []
            if feature.name in example:
                there = example[feature.name].WhichOneof("kind")
                if there not in (None, kind):
                    raise DamagedRecord(
                        f"record {number}: {feature.name!r} is a {there}, not a {kind}"
                    )
                values = list(getattr(example[feature.name], kind).value)
            lists.append(values)
        return lists

    def _one_by_one(self, feature: Feature) -> wire.Found:
        lists, size = self._lists(feature), _size(feature)
        there = np.array([bool(values) for values in lists])
        for number, values in enumerate(lists, self._first):
            if values and len(values) != size:
                raise DamagedRecord(
                    f"record {number}: {feature.name!r} has {len(values)} values, not {size}"
                )
        flat = [value for values in lists for value in (values or [_NULLS[feature.dtype]] * size)]
        return wire.Found(_array(flat, _DTYPES[feature.dtype]).reshape(-1, size), there)

    def _ragged(self, feature: Feature) -> Column:
        lists = self._lists(feature)
        splits = np.concatenate(([0], np.cumsum([len(values) for values in lists])))
        valid = np.array([feature.name in example for example in self._examples])
        flat = _array([value for values in lists for value in values], _DTYPES[feature.dtype])
        return Column(flat, splits.astype(np.int64), valid if feature.nullable else None)


def _size(feature: Feature) -> int:
    """Values a row."""
    return prod(n or 0 for n in feature.shape)


@lru_cache(maxsize=256)
def _codes(dictionary: tuple[str, ...]) -> dict[bytes, int]:
    return {word.encode(): number for number, word in enumerate(dictionary)}


def _array(values: list[Any], dtype: Any) -> Array:
    array: Array = np.empty(len(values), dtype)
    array[:] = values
    return array
