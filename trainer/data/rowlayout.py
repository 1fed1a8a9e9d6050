"""Layout `rows`: one standard tf.train.Example a row, null = feature absent, read into blocks.

Anything reads these files; ours only needs them to train and to evaluate, slower than blocks. Such
records carry no row number: a row is known by its place in the split.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from trainer.data.blocks import NULL_CODE, NULL_INT, Array, Block, Column
from trainer.data.example import Example
from trainer.data.manifest import Feature, Manifest, Shard

_LISTS = {"float32": "float_list", "int64": "int64_list", "string": "bytes_list"}
_NULLS: dict[str, Any] = {"float32": np.nan, "int64": NULL_INT, "string": b""}
_DTYPES: dict[str, Any] = {"float32": np.float32, "int64": np.int64, "string": object}


def decode_rows(
    manifest: Manifest, records: Iterable[bytes], shard: Shard, skip: int
) -> Iterator[Block]:
    """Yields blocks of `block_rows` rows; `skip` of them stand before the first record."""
    records = iter(records)
    first = _rows_before(manifest, shard) + skip * manifest.block_rows
    while examples := [
        Example.FromString(record).features.feature
        for record in islice(records, manifest.block_rows)
    ]:
        yield _block(manifest.features, examples, first)
        first += len(examples)


def _rows_before(manifest: Manifest, shard: Shard) -> int:
    """Rows of the split that stand in earlier shards."""
    for split in manifest.splits.values():
        rows = 0
        for other in split.shards:
            if other.path == shard.path:
                return rows
            rows += other.rows
    raise KeyError(shard.path)


def _block(features: tuple[Feature, ...], examples: list[Any], first: int) -> Block:
    packs: dict[str, list[Array]] = {}
    loose: dict[str, Column] = {}
    for feature in features:
        column = _column(feature, examples)
        if feature.storage is not None and feature.storage.kind == "packed":
            packs.setdefault(feature.storage.key, []).append(column.values)
        else:
            loose[feature.name] = column
    row_id = np.arange(first, first + len(examples), dtype=np.int64)
    return Block(row_id, {key: np.stack(pack, axis=1) for key, pack in packs.items()}, loose)


def _column(feature: Feature, examples: list[Any]) -> Column:
    lists = [
        list(getattr(example[feature.name], _LISTS[feature.dtype]).value)
        if feature.name in example
        else None
        for example in examples
    ]
    dtype, null = _DTYPES[feature.dtype], _NULLS[feature.dtype]
    valid = np.array([values is not None for values in lists])
    if feature.shape == ():
        scalars = [values[0] if values else null for values in lists]
        if feature.dictionary is not None:
            code = {word.encode(): number for number, word in enumerate(feature.dictionary)}
            return Column(np.array([code.get(word, NULL_CODE) for word in scalars], np.int32))
        return Column(_array(scalars, dtype))
    if None in feature.shape:
        lengths = [len(values or ()) for values in lists]
        splits = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        flat = [value for values in lists for value in values or ()]
        return Column(_array(flat, dtype), splits, valid if feature.nullable else None)
    size = int(np.prod([n or 0 for n in feature.shape]))
    flat = [value for values in lists for value in (values or [null] * size)]
    shape = (len(lists), *(n or 0 for n in feature.shape))
    return Column(_array(flat, dtype).reshape(shape), None, valid if feature.nullable else None)


def _array(values: list[Any], dtype: Any) -> Array:
    array: Array = np.empty(len(values), dtype)
    array[:] = values
    return array
