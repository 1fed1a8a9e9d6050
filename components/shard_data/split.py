"""Which row goes to which split, and in what order it stands there.

Without `--split-by`, the shuffled rows are cut at the declared fractions: exact to the row. With
it, a hash of the value decides, so that equal values share a split, today and when rows are added.
"""

from __future__ import annotations

import hashlib
import itertools
from typing import Any

import numpy as np
import numpy.typing as npt

from components.shard_data import shuffle
from components.shard_data.findings import Findings
from components.shard_data.options import ShardOptions
from components.shard_data.series import Series
from trainer.errors import UsageError

Rows = npt.NDArray[np.int64]
_HASH_RANGE = 1 << 64


def assign(
    row_id: Rows, group: Series | None, options: ShardOptions, say: Findings
) -> tuple[dict[str, Rows], dict[str, Any]]:
    """Returns each split's rows (positions, in stored order) and the rule for the manifest.

    Args:
      row_id: int64 [n], the rows' numbers in the source.
      group: the column of `--split-by`, or None.
      options: split, seed.
      say: takes the notes.

    Raises:
      UsageError: a split that was asked for, or train, would be empty.
    """
    order = shuffle.order(row_id, options.seed)
    names = list(options.split)
    ends = np.cumsum(list(options.split.values()))
    rule: dict[str, Any] = {"fractions": dict(options.split), "seed": options.seed}
    if group is None:
        cuts = [0, *np.rint(ends * len(order)).astype(int).tolist()]
        cuts[-1] = len(order)
        splits = {name: order[cuts[i] : cuts[i + 1]] for i, name in enumerate(names)}
        rule["method"] = "shuffled by splitmix64 of seed and row number, cut at the fractions"
    else:
        chosen = _by_value(group, options.seed, ends)[order]
        splits = {name: order[chosen == i] for i, name in enumerate(names)}
        rule["method"] = "by blake2b of seed and value: equal values share a split"
        rule["column"] = group.name
    return _without_empty(splits, options, say), rule


def _by_value(group: Series, seed: int, ends: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Returns each row's split [n] from a hash of its value; null is a value like others."""
    distinct, which = np.unique(group.column.values, return_inverse=True)
    key = seed.to_bytes(8, "little")
    hashes = []
    for value in distinct.tolist():
        null = group.words is not None and value < 0
        if group.words is not None:
            text = b"" if null else group.words[value]
        else:
            text = repr(value).encode()
        digest = hashlib.blake2b(text, digest_size=8, key=key, person=b"null" if null else b"")
        hashes.append(int.from_bytes(digest.digest(), "little") / _HASH_RANGE)
    split = np.searchsorted(ends, np.array(hashes), side="right")
    return np.minimum(split, len(ends) - 1)[which]


def _without_empty(
    splits: dict[str, Rows], options: ShardOptions, say: Findings
) -> dict[str, Rows]:
    rows = sum(map(len, splits.values()))
    kept = {}
    for name, members in splits.items():
        if len(members):
            kept[name] = members
        elif name == "train" or not options.split_is_default:
            raise UsageError(
                f"split {name} would have none of the {rows:,} rows: give it a larger fraction "
                "with --split, or bring more rows"
            )
        else:
            say.note(f"there is no {name} split: none of the {rows:,} rows falls into it")
    return kept


def shard_counts(splits: dict[str, Rows], shards: int | None) -> dict[str, int]:
    """Returns the number of shards of each split.

    By default 16 for train (two workers with eight lanes each), and as many for the others as
    their share of rows. A declared number holds for all, but a shard has at least one row.

    Raises:
      UsageError: fewer training rows than `shards`.
    """
    train = len(splits["train"])
    if shards is not None:
        if shards > train:
            raise UsageError(
                f"--shards ({shards}) is more than the {train} rows of train: at most a shard a row"
            )
        return {name: min(shards, len(rows)) for name, rows in splits.items()}
    most = min(16, train)
    return {
        name: min(len(rows), max(1, round(most * len(rows) / train)), 16)
        for name, rows in splits.items()
    }


def ranges(rows: int, shards: int) -> list[tuple[int, int]]:
    """Returns (start, end) of `shards` runs of rows, equal to within one."""
    cuts = [rows * i // shards for i in range(shards + 1)]
    return list(itertools.pairwise(cuts))
