"""The order of rows: a pure function of the seed and the row's number.

Each row gets a key from a hash (splitmix64) and rows are sorted by it. Unlike a random generator's
permutation, it is the same in every version of every library, a row that is left out does not
change the order of the others, and no process needs to know of the other rows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Keys = npt.NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def _mix(values: Keys) -> Keys:
    """The finaliser of splitmix64: a bijection of 64 bits; overflow wraps on purpose."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def of_rows(row_id: npt.NDArray[np.int64], seed: int) -> Keys:
    """Returns the keys [n] of rows with distinct numbers [n]: distinct, too."""
    start = _mix(np.array([seed], np.uint64) + _GOLDEN)
    return _mix((row_id.astype(np.uint64) + np.uint64(1)) * _GOLDEN + start)


def of_moments(values: npt.NDArray[np.int64]) -> Keys:
    """Returns whole numbers [n] as keys of the same order."""
    return values.view(np.uint64) ^ np.uint64(1 << 63)


def moments_of(found: Keys) -> npt.NDArray[np.int64]:
    """Returns the whole numbers [n] that have these keys."""
    return (found ^ np.uint64(1 << 63)).view(np.int64)
