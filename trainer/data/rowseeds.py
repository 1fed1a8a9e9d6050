"""A seed of its own for every training row, from (seed, step, place in the global batch).

So whatever is drawn for a row is the same on any number of replicas, and after a resume. The mixing
is SplitMix64's finaliser: integer arithmetic that no version of a library changes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)

Words = npt.NDArray[np.uint64]


def places(which: Sequence[int], rows_per_lane: int) -> npt.NDArray[np.int64]:
    """Returns where a replica's rows stand in the global batch, which is laid out lane by lane."""
    return (np.array(which)[:, None] * rows_per_lane + np.arange(rows_per_lane)).ravel()


def row_seeds(
    seed: int, step: int, steps: int, places: npt.NDArray[np.int64]
) -> npt.NDArray[np.int32]:
    """Returns int32 [steps * rows, 2] for `steps` steps from `step` on, by step, then by place."""
    key = _mixed(np.array([seed], np.uint64))
    numbers: Words = np.arange(step, step + steps).astype(np.uint64)
    by_step = _mixed(key + numbers)
    by_row = _mixed(by_step[:, None] + places.astype(np.uint64))
    return by_row.view(np.int32).reshape(-1, 2)


def _mixed(words: Words) -> Words:
    """Wraps around at 64 bits, as it should."""
    words = words + _GOLDEN
    words = (words ^ (words >> np.uint64(30))) * _FIRST
    words = (words ^ (words >> np.uint64(27))) * _SECOND
    return words ^ (words >> np.uint64(31))
