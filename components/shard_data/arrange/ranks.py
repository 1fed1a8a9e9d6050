"""The keys that stand at given ranks, found by two passes over keys that need not fit in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from components.shard_data.arrange.keys import Keys

# The first pass counts keys by their leading bits, the second sorts those of the bins that matter.
_BITS = 16


def at(load: Callable[[], Iterable[Keys]], ranks: Sequence[int]) -> Keys:
    """Returns the key at each rank (from 0) of all keys together.

    Args:
      load: yields the keys in parts, each time that it is called.
      ranks: below the number of keys.
    """
    wanted = np.asarray(ranks, np.int64)
    if not wanted.size:
        return np.zeros(0, np.uint64)
    counts = np.zeros(1 << _BITS, np.int64)
    for keys in load():
        counts += np.bincount(_bins(keys), minlength=1 << _BITS)
    ends = np.cumsum(counts)
    chosen = np.searchsorted(ends, wanted, side="right")
    needed = np.zeros(1 << _BITS, bool)
    needed[chosen] = True
    members: list[Keys] = [keys[needed[_bins(keys)]] for keys in load()]
    kept = np.sort(np.concatenate(members))
    # Rank among the kept: those of bins that are left out, and stand before, don't count.
    before = np.cumsum(np.where(needed, counts, 0)) - np.where(needed, counts, 0)
    within = wanted - (ends - counts)[chosen]
    return np.asarray(kept[before[chosen] + within], np.uint64)


def _bins(keys: Keys) -> npt.NDArray[np.int64]:
    return (keys >> np.uint64(64 - _BITS)).astype(np.int64)
