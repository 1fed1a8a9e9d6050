"""How much a figure may differ by luck when nothing has changed.

Each function gives an allowance at a chance of about one in a hundred thousand, so that a data set
of a hundred columns passes as a whole if it is clean. Thresholds come on top.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

# One in 100,000: a normal variable is beyond four and a quarter deviations.
ALPHA = 1e-5
DEVIATIONS = 4.26
# Beyond the range of a reference by so many times its width, a value is of another kind.
FAR = 10.0

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]


def beyond(rank: int, reference: int, values: int) -> int:
    """Returns how many of n new values may lie beyond the k-th largest value of a reference.

    The number is negative binomial whatever the distribution is: that is what a rank is good for.

    Args:
      rank: k, from 1.
      reference: how many values the reference has.
      values: n.
    """
    mean = rank * values / reference
    deviation = np.sqrt(mean * (1 + values / reference))
    # Far enough out to hold all but ALPHA, also of rank 1, whose tail is the longest.
    count = np.arange(int(min(values, mean + 12 * deviation + 40)))
    ratios = np.log((count + rank) / (count + 1)) + np.log(values / (reference + values))
    first = rank * np.log(reference / (reference + values))
    chances = np.exp(first + np.concatenate(([0.0], np.cumsum(ratios))))
    return min(int(np.searchsorted(np.cumsum(chances), 1 - ALPHA)), values)


def far_beyond(reference: int, values: int) -> int:
    """Returns how many of n new values may be further out than `FAR` ranges of a reference.

    Of a distribution with tails as heavy as Cauchy's, one value in FAR of those beyond the largest
    one is; most have lighter ones.
    """
    return beyond(1, round(FAR * reference), values)


def unseen(singles: int, reference: int, values: int) -> float:
    """Returns the share of new values that may be of categories that a reference lacks.

    Good and Turing: about as much as the reference has of categories that it saw once.
    """
    expected = (singles + 3) / max(reference, 1)
    return float(min(1, expected + DEVIATIONS * np.sqrt(expected * (1 / reference + 1 / values))))


def between_shares(first: float, first_of: int, second: float, second_of: int) -> float:
    """Returns how far two shares of one truth may lie apart."""
    pooled = (first * first_of + second * second_of) / (first_of + second_of)
    return float(DEVIATIONS * np.sqrt(pooled * (1 - pooled) * (1 / first_of + 1 / second_of)))


def largest_change(first: Counts, second: Counts) -> tuple[float, int]:
    """Returns the largest change of a category's share, less what is luck, and its place.

    Args:
      first: counts by category [n].
      second: counts by the same categories [n].
    """
    ones, twos = first.sum(), second.sum()
    if not ones or not twos:
        return 0.0, 0
    pooled = (first + second) / (ones + twos)
    # With many categories the largest of many lucky changes is larger.
    deviations = DEVIATIONS + np.sqrt(2 * np.log(len(first)))
    luck = deviations * np.sqrt(pooled * (1 - pooled) * (1 / ones + 1 / twos))
    change = np.maximum(np.abs(first / ones - second / twos) - luck, 0)
    place = int(change.argmax())
    return float(change[place]), place


def jensen_shannon(first: Counts, second: Counts) -> float:
    """Returns the Jensen-Shannon distance (0 to 1) of two histograms, less what is luck.

    The divergence of two samples of one distribution is about chi-squared/8 (1/n1 + 1/n2).
    """
    ones, twos = first.sum(), second.sum()
    if not ones or not twos:
        return 0.0
    p, q = first / ones, second / twos
    middle = (p + q) / 2
    divergence = (_relative(p, middle) + _relative(q, middle)) / 2
    free = max(int((middle > 0).sum()) - 1, 0)
    # Wilson and Hilferty: the quantile of chi-squared.
    cube = 1 - 2 / (9 * free) + DEVIATIONS * np.sqrt(2 / (9 * free)) if free else 0
    luck = free * cube**3 * (1 / ones + 1 / twos) / 8
    return float(np.sqrt(max(divergence - luck, 0) / np.log(2)))


def _relative(p: Floats, q: Floats) -> float:
    there = p > 0
    return float((p[there] * np.log(p[there] / q[there])).sum())
