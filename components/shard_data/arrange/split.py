"""The rules that part rows into splits.

fractions   the shuffled rows are cut at the fractions: exact to the row
--split-by  a hash of the values decides: equal values share a split, today and when rows are
added
--split-time  by time: all of train before all of eval before all of test; equal times together
--split-column  a column names each row's split
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from components.shard_data.findings import Findings
from components.shard_data.options import ShardOptions
from trainer.errors import UsageError

Codes = npt.NDArray[np.uint8]
_HASH_RANGE = 1 << 64
# A shard of about so many bytes of source is read in a moment, and makes lanes enough.
MOST_DEFAULT_SHARDS = 16


def by_values(columns: list[pa.Array], options: ShardOptions) -> Codes:
    """Returns each row's split [n] from a hash of its values in these columns.

    Null is a value like others.
    """
    ends = np.cumsum(list(options.split.values()))
    key = options.seed.to_bytes(8, "little")
    table = pa.table(columns, names=[str(i) for i in range(len(columns))])
    encoded = table.combine_chunks().to_struct_array() if len(columns) > 1 else table.column(0)
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    distinct, which = _distinct(encoded)
    hashes = []
    for value in distinct:
        digest = hashlib.blake2b(
            _bytes_of(value), digest_size=8, key=key, person=b"null" if value is None else b""
        )
        hashes.append(int.from_bytes(digest.digest(), "little") / _HASH_RANGE)
    split = np.searchsorted(ends, np.array(hashes), side="right")
    return np.minimum(split, len(ends) - 1).astype(np.uint8)[which]


def _distinct(array: pa.Array) -> tuple[list[Any], npt.NDArray[np.int64]]:
    """Returns the distinct values and each row's place among them."""
    if pa.types.is_struct(array.type):
        values: dict[Any, int] = {}
        which = [values.setdefault(tuple(row.values()), len(values)) for row in array.to_pylist()]
        return list(values), np.array(which, np.int64)
    encoded = array.dictionary_encode()
    distinct = [*encoded.dictionary.to_pylist(), None]
    codes = encoded.indices.fill_null(len(distinct) - 1)
    return distinct, np.asarray(codes.to_numpy(zero_copy_only=False), np.int64)


def _bytes_of(value: Any) -> bytes:
    if value is None:
        return b""
    return value if isinstance(value, bytes) else repr(value).encode()


def without_empty(rows: Mapping[str, int], options: ShardOptions, say: Findings) -> dict[str, int]:
    """Returns the splits that have rows, in order.

    Raises:
      UsageError: a split that was asked for, or train, would be empty.
    """
    total = sum(rows.values())
    kept = {}
    for name, count in rows.items():
        if count:
            kept[name] = count
        elif name == "train" or not options.split_is_default:
            raise UsageError(
                f"split {name} would have none of the {total:,} rows: give it a larger fraction "
                "with --split, or bring more rows"
            )
        else:
            say.note(f"there is no {name} split: none of the {total:,} rows falls into it")
    return kept


def sizes(total: int, options: ShardOptions) -> dict[str, int]:
    """Returns the rows of each split where the fractions cut `total` rows."""
    ends = np.rint(np.cumsum(list(options.split.values())) * total).astype(int).tolist()
    ends[-1] = total
    return {
        name: end - start
        for name, (start, end) in zip(options.split, itertools.pairwise([0, *ends]), strict=True)
    }


def shard_counts(rows: Mapping[str, int], shards: int | None, by_size: int = 0) -> dict[str, int]:
    """Returns the number of shards of each split.

    By default 16 for train (two workers with eight lanes each), or as many as its size asks for
    (`by_size`), and as many for the others as their share of rows. A declared number holds for
    all, but a shard has at least one row.

    Raises:
      UsageError: fewer training rows than `shards`.
    """
    train = rows["train"]
    if shards is not None:
        if shards > train:
            raise UsageError(
                f"--shards ({shards}) is more than the {train} rows of train: at most a shard a row"
            )
        return {name: min(shards, count) for name, count in rows.items()}
    most = min(max(MOST_DEFAULT_SHARDS, by_size), train)
    return {
        name: min(count, max(1, round(most * count / train)), max(MOST_DEFAULT_SHARDS, by_size))
        for name, count in rows.items()
    }


def ranges(rows: int, shards: int) -> list[tuple[int, int]]:
    """Returns (start, end) of `shards` runs of rows, equal to within one."""
    ends = [rows * i // shards for i in range(shards + 1)]
    return list(itertools.pairwise(ends))
