"""Where each row goes, as a function of its key: made once, followed in every piece."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from components.shard_data.arrange import ranks, split
from components.shard_data.arrange.keys import Keys
from components.shard_data.findings import Findings
from components.shard_data.options import ShardOptions

Arrays = Mapping[str, npt.NDArray[np.generic]]
Load = Callable[[], Iterator[Arrays]]


@dataclass(frozen=True)
class Place:
    """A shard: its number within its split, its rows, its buckets in the order of their keys."""

    split: str
    number: int
    rows: int
    buckets: range


@dataclass(frozen=True)
class Placement:
    """Splits in order, their rows and numbers of shards, and the keys at which shards end.

    A shard is written a bucket of rows after another, so that memory holds a bucket. Buckets are
    numbered over all shards of all splits. `bounds`: for each part that rows say they are of (all
    are of part 0 where they say nothing) its first bucket and the first key of each further one.
    `moments`: the last moment of each split but the last, where time parts.
    """

    rows: dict[str, int]
    shards: dict[str, int]
    bucket_rows: int
    bounds: dict[int, tuple[int, Keys]]
    moments: Keys | None = None

    def bucket_of(self, arrays: Arrays) -> npt.NDArray[np.int32]:
        """Returns the bucket of each row of a piece, from what `rank` left."""
        key = np.asarray(arrays["key"], np.uint64)
        part = parts(arrays, self.moments)
        if part is None:
            first, further = self.bounds[0]
            return (first + np.searchsorted(further, key, side="right")).astype(np.int32)
        shard = np.zeros(len(key), np.int32)
        for code, (first, further) in self.bounds.items():
            chosen = part == code
            shard[chosen] = first + np.searchsorted(further, key[chosen], side="right")
        return shard

    def places(self) -> list[Place]:
        """Returns all shards, split by split."""
        found: list[Place] = []
        first = 0
        for name, rows in self.rows.items():
            for number, (start, end) in enumerate(split.ranges(rows, self.shards[name])):
                buckets = -(-(end - start) // self.bucket_rows)
                found.append(Place(name, number, end - start, range(first, first + buckets)))
                first += buckets
        return found

    @property
    def buckets(self) -> int:
        """How many there are."""
        return self.places()[-1].buckets.stop


def parts(arrays: Arrays, moments: Keys | None) -> npt.NDArray[np.integer] | None:
    """Returns the part that each row says it is of; None: it says nothing."""
    if moments is not None:
        return np.searchsorted(moments, arrays["moment"], side="left")
    code = arrays.get("split")
    return None if code is None else np.asarray(code, np.uint8)


def place(
    load: Load,
    by_part: Mapping[str, int] | None,
    total: int,
    options: ShardOptions,
    say: Findings,
    counts: Callable[[Mapping[str, int]], dict[str, int]],
    bucket_rows: int,
    moments: Keys | None = None,
    may_be_empty: bool = False,
) -> Placement:
    """Finds the keys at which splits and shards end.

    Args:
      load: yields what `rank` left of each piece.
      by_part: rows by name of split where rows say it themselves; None: they don't.
      total: rows that are kept.
      options: `split`, `shards`, `split_time`.
      say: takes the notes.
      counts: from the rows of each split to its number of shards.
      bucket_rows: what memory holds; a multiple of the rows of a block.
      moments: the last moment of each split but the last, if they are known.
      may_be_empty: splits without rows are left out, train too.

    Raises:
      UsageError: a split that was asked for, or train, would be empty; too many shards.
    """
    if options.split_time is not None:
        if moments is None:
            moments = _moments(load, total, options)
        by_part = _by_time(load, moments, options)
    found = by_part or split.sizes(total, options)
    if may_be_empty:
        rows = {name: count for name, count in found.items() if count}
    else:
        rows = split.without_empty(found, options, say)
    shards = counts(rows)
    if by_part is None:
        starts = [
            start + within
            for name, start in zip(rows, np.cumsum([0, *rows.values()]).tolist(), strict=False)
            for within in _starts(rows[name], shards[name], bucket_rows)
        ]
        further = ranks.at(lambda: (np.asarray(a["key"], np.uint64) for a in load()), starts[1:])
        return Placement(rows, shards, bucket_rows, {0: (0, further)})
    bounds = {}
    first = 0
    for code, name in enumerate(by_part):
        if name in rows:
            starts = _starts(rows[name], shards[name], bucket_rows)
            bounds[code] = (first, ranks.at(_keys_of(load, code, moments), starts[1:]))
            first += len(starts)
    return Placement(rows, shards, bucket_rows, bounds, moments)


def _starts(rows: int, shards: int, bucket_rows: int) -> list[int]:
    """Returns where the buckets of a split begin: those of each shard at its own beginning."""
    return [
        start for low, high in split.ranges(rows, shards) for start in range(low, high, bucket_rows)
    ]


def _keys_of(load: Load, code: int, moments: Keys | None) -> Callable[[], Iterator[Keys]]:
    def keys() -> Iterator[Keys]:
        for arrays in load():
            yield np.asarray(arrays["key"], np.uint64)[parts(arrays, moments) == code]

    return keys


def _moments(load: Load, total: int, options: ShardOptions) -> Keys:
    """Returns the last moment of each split but the last.

    Rows of one moment stay together: they go to the side of the cut that leaves both splits nearer
    to their fractions.
    """
    ends = np.cumsum(list(split.sizes(total, options).values()))[:-1]
    last = np.maximum(ends - 1, 0).tolist()
    moments = ranks.at(lambda: (np.asarray(a["moment"], np.uint64) for a in load()), last)
    before, through = np.zeros(len(ends), np.int64), np.zeros(len(ends), np.int64)
    for arrays in load():
        found = np.sort(np.asarray(arrays["moment"], np.uint64))
        before += np.searchsorted(found, moments, side="left")
        through += np.searchsorted(found, moments, side="right")
    is_nearer = (before > 0) & (ends - before < through - ends)
    return np.where(is_nearer, moments - np.uint64(1), moments)


def _by_time(load: Load, moments: Keys, options: ShardOptions) -> dict[str, int]:
    """Returns the rows of each split."""
    counts = np.zeros(len(options.split), np.int64)
    for arrays in load():
        part = np.searchsorted(moments, arrays["moment"], side="left")
        counts += np.bincount(part, minlength=len(options.split))
    return dict(zip(options.split, counts.tolist(), strict=True))
