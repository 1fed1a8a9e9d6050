"""`statistics.json`: figures of each column in each split, over the rows as they are stored."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from components.shard_data.series import Series
from trainer.data.statistics import (
    MOST_COUNTED,
    FeatureStatistics,
    SplitStatistics,
    Statistics,
)

Floats = npt.NDArray[np.float64]

_BINS = 20
_QUANTILES = np.linspace(0, 1, 11)
# Enough for every dictionary, and for embeddings of longer vocabularies.
_LARGEST_VOCABULARY = 10_000


def describe(
    columns: Mapping[str, Series], splits: Mapping[str, npt.NDArray[np.int64]]
) -> Statistics:
    """Returns the figures of all splits (positions of their rows [n])."""
    return Statistics(
        splits={
            name: SplitStatistics(
                rows=len(rows),
                features={key: _column(series.take(rows)) for key, series in columns.items()},
            )
            for name, rows in splits.items()
        }
    )


def _column(series: Series) -> FeatureStatistics:
    missing = series.missing
    values = series.column.values
    if series.column.splits is None:
        values = values[~missing].ravel()
    count, absent = int((~missing).sum()), int(missing.sum())
    if series.words is not None:
        return _words(series, values, count, absent)
    if not len(values):
        return FeatureStatistics(count=count, missing=absent, distinct=0)
    wide = values.astype(np.float64)
    counts, edges = _histogram(wide)
    distinct, times = np.unique(values, return_counts=True)
    return FeatureStatistics(
        count=count,
        missing=absent,
        distinct=len(distinct),
        mean=float(wide.mean()),
        std=float(wide.std()),
        min=float(wide.min()),
        max=float(wide.max()),
        quantiles=tuple(np.quantile(wide, _QUANTILES).tolist()),
        histogram_edges=tuple(edges.tolist()),
        histogram_counts=tuple(counts.tolist()),
        vocabulary=_counted(distinct, times),
    )


def _counted(
    values: npt.NDArray[np.generic], times: npt.NDArray[np.int64]
) -> tuple[tuple[str, int], ...] | None:
    """Returns whole numbers and how often they are there, if they are few."""
    if values.dtype != np.int64 or len(values) > MOST_COUNTED:
        return None
    order = np.argsort(-times, kind="stable")
    return tuple((str(values[i]), int(times[i])) for i in order)


def _histogram(wide: Floats) -> tuple[npt.NDArray[np.int64], Floats]:
    """Returns counts and edges of equal-width bins, fewer where float64 has no room for them."""
    low, high = wide.min(), wide.max()
    if low == high:  # Half a unit to each side, as numpy has it, or as much as large numbers need.
        margin = max(0.5, _BINS * float(np.spacing(np.abs(high))))
        low, high = low - margin, high + margin
    edges = np.unique(np.linspace(low, high, _BINS + 1))
    counts, edges = np.histogram(wide, bins=edges)
    return counts.astype(np.int64), edges


def _words(
    series: Series, codes: npt.NDArray[np.generic], count: int, absent: int
) -> FeatureStatistics:
    words = series.words
    if words is None:
        raise TypeError(f"text column {series.name} without words")
    counts = np.bincount(codes.astype(np.int64), minlength=len(words))
    # Codes are in the order of the words, so a stable sort leaves ties in that order.
    order = np.argsort(-counts, kind="stable")
    seen = order[counts[order] > 0]
    return FeatureStatistics(
        count=count,
        missing=absent,
        distinct=len(seen),
        vocabulary=tuple((words[i].decode(), int(counts[i])) for i in seen[:_LARGEST_VOCABULARY]),
    )
