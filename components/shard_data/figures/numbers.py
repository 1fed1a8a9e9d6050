"""Numbers: moments, a histogram on edges that all splits share, and sorted values with how often.

Each different value of a shard is kept with its count, so that quantiles, distinct values and the
cumulative distribution are exact. Shards of a split beyond `state.MOST_KEPT` rows keep some hundred
values of equal weight instead (`state.apart`): each shard then misplaces a rank by at most one part
in so many, and so does the split.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from components.shard_data.figures import distinct
from components.shard_data.figures.state import Array, Part
from trainer.data.statistics import LARGE_SHARE, LEVELS, MOST_COUNTED, FeatureStatistics

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

_BINS = 20
_QUANTILES = np.linspace(0, 1, 11)


def part(
    values: Array,
    count: int,
    missing: int,
    limits: tuple[float, float] | None,
    most: int | None,
) -> Part:
    """Returns what one shard says.

    Args:
      values: float32 or int64 [values that are there], in any order.
      count: rows that have a value.
      missing: rows that have none.
      limits: smallest and largest value over all splits; None: there is no value anywhere.
      most: how many different values are kept; None: all.
    """
    facts = {"count": count, "missing": missing, "values": len(values), "exact": True}
    if limits is None or not len(values):
        return Part(facts)
    ordered = np.sort(values)
    first = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    apart, times = ordered[first], np.diff(first, append=len(ordered))
    wide = apart.astype(np.float64)
    mean = float((wide * times).sum() / len(ordered))
    moments = {"mean": mean, "squares": float((np.square(wide - mean) * times).sum())}
    edges = histogram_edges(*limits)
    arrays: dict[str, Array] = {
        "edges": edges,
        "histogram": histogram(wide, np.cumsum(times), edges),
    }
    if most is not None and len(apart) > most:
        facts["exact"] = False
        arrays["sketch"] = distinct.sketch(apart)
        # The smallest, then the last value of each of so many stretches of equal length.
        ends = np.append(1, np.arange(1, most + 1) * len(ordered) // most)
        apart, times = ordered[ends - 1], np.diff(ends, prepend=0)
    arrays["apart"] = apart
    if len(apart) < len(ordered):  # else each is there once
        arrays["times"] = times.astype(np.int32)
    extremes = {"min": float(wide[0]), "max": float(wide[-1])}
    return Part({**facts, **moments, **extremes}, arrays)


def histogram_edges(low: float, high: float) -> Floats:
    """Returns edges of equal-width bins, fewer where float64 has no room for them."""
    if low == high:  # Half a unit to each side, as numpy has it, or as much as large numbers need.
        margin = max(0.5, _BINS * float(np.spacing(np.abs(high))))
        low, high = low - margin, high + margin
    return np.unique(np.linspace(low, high, _BINS + 1))


def histogram(wide: Floats, cumulated: Counts, edges: Floats) -> Counts:
    """Returns the counts of the bins; what rounding puts outside goes to the outermost.

    Args:
      wide: values, rising [n].
      cumulated: how many are at most as large as each [n].
      edges: of the bins [bins + 1].
    """
    below = np.concatenate(([0], cumulated))[np.searchsorted(wide, edges)]
    below[0], below[-1] = 0, cumulated[-1]
    return np.diff(below)


def figures(parts: Sequence[Part]) -> FeatureStatistics:
    """Returns the figures of all shards together."""
    count = sum(p.facts["count"] for p in parts)
    missing = sum(p.facts["missing"] for p in parts)
    there = [p for p in parts if p.arrays]
    if not there:
        return FeatureStatistics(count=count, missing=missing, distinct=0)
    exact = all(p.facts["exact"] for p in there)
    apart, cumulated = _merged(there)
    wide = apart.astype(np.float64)
    mean, std = _moments([p.facts for p in there])
    return FeatureStatistics(
        count=count,
        missing=missing,
        distinct=len(apart) if exact else _estimate(there),
        mean=mean,
        std=std,
        min=min(p.facts["min"] for p in there),
        max=max(p.facts["max"] for p in there),
        quantiles=quantiles(wide, cumulated),
        histogram_edges=tuple(there[0].arrays["edges"].tolist()),
        histogram_counts=tuple(np.sum([p.arrays["histogram"] for p in there], axis=0).tolist()),
        vocabulary=_counted(apart, cumulated) if exact else None,
        cumulative=_distribution(wide, cumulated),
        approximate=None if exact else ("quantiles", "cumulative", "distinct"),
    )


def _merged(parts: Sequence[Part]) -> tuple[Array, Counts]:
    """Returns the different values, rising, and how many of all are at most as large as each."""
    values = np.concatenate([p.arrays["apart"] for p in parts])
    if all("times" not in p.arrays for p in parts):
        ordered, weights = np.sort(values), None
    else:
        order = np.argsort(values, kind="stable")
        ordered = values[order]
        weights = np.concatenate([_weights(p) for p in parts])[order]
    last = np.flatnonzero(np.concatenate((ordered[1:] != ordered[:-1], [True])))
    cumulated = last + 1 if weights is None else np.cumsum(weights)[last]
    return ordered[last], cumulated


def _weights(part: Part) -> Counts:
    times = part.arrays.get("times")
    size = part.arrays["apart"].size
    return np.ones(size, np.int64) if times is None else times.astype(np.int64)


def _moments(parts: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """Returns mean and standard deviation, merged shard by shard (Chan, Golub, LeVeque)."""
    total, mean, squares = 0, 0.0, 0.0
    for facts in parts:
        more = facts["values"]
        apart = facts["mean"] - mean
        squares += facts["squares"] + apart**2 * total * more / (total + more)
        total += more
        mean += apart * more / total
    return mean, float(np.sqrt(squares / total))


def quantiles(wide: Floats, cumulated: Counts) -> tuple[float, ...]:
    """Returns the deciles as `np.quantile` has them, of values with how often they are there."""
    at = _QUANTILES * (cumulated[-1] - 1)
    lower = np.floor(at)
    left = wide[np.searchsorted(cumulated, lower, side="right")]
    right = wide[np.searchsorted(cumulated, np.ceil(at), side="right")]
    share, step = at - lower, right - left
    # From the nearer end, as numpy interpolates: the outermost are met exactly.
    found = np.where(share < 0.5, left + step * share, right - step * (1 - share))
    return tuple(found.tolist())


def _distribution(wide: Floats, cumulated: Counts) -> tuple[tuple[float, int], ...]:
    """Returns values at `LEVELS`, and the one below each that very many rows share."""
    total = cumulated[-1]
    chosen = np.searchsorted(cumulated, np.asarray(LEVELS) * total)
    share = np.diff(cumulated, prepend=0)[chosen] / total
    below = chosen[(share >= LARGE_SHARE) & (chosen > 0)] - 1
    places = np.unique(np.concatenate((chosen, below)))
    return tuple(zip(wide[places].tolist(), cumulated[places].tolist(), strict=True))


def _counted(apart: Array, cumulated: Counts) -> tuple[tuple[str, int], ...] | None:
    """Returns whole numbers and how often they are there, if they are few."""
    if apart.dtype != np.int64 or len(apart) > MOST_COUNTED:
        return None
    times = np.diff(cumulated, prepend=0)
    order = np.argsort(-times, kind="stable")
    return tuple((str(apart[i]), int(times[i])) for i in order)


def _estimate(parts: Sequence[Part]) -> int:
    sketches = [p.arrays.get("sketch") for p in parts]
    return distinct.estimate(
        [
            distinct.sketch(p.arrays["apart"]) if sketch is None else sketch
            for p, sketch in zip(parts, sketches, strict=True)
        ]
    )
