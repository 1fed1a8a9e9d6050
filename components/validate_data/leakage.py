"""Does one feature alone give the label away? Suspicion of a column that knows the answer.

On a sample of training rows: the label's mean is learned for each value (or narrow range) of a
feature on one half, and tells the label on the other, so that a column of row numbers tells
nothing. Only scalar numbers and dictionary-coded text are looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from trainer.data.manifest import LabelKind

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

# Enough that 0.999 means something.
SAMPLE_ROWS = 50_000
MEASURES: dict[LabelKind, str] = {
    "binary": "AUC",
    "multiclass": "share of the errors of guessing that it avoids",
    "regression": "rank correlation",
}
_LEAST_ROWS = 200
_LEAST_OF_CLASS = 20
_RANGES = 256


def suspicions(kind: LabelKind, label: Array, columns: Mapping[str, Array]) -> dict[str, float]:
    """Returns how well each column alone tells the label, from 0 to 1.

    Args:
      kind: of the label, decides the measure (`MEASURES`).
      label: classes as whole numbers, or values [rows]; NaN where there is none.
      columns: float64 [rows] each; NaN is missing.
    """
    there = ~np.isnan(label)
    label = label[there]
    if len(label) < _LEAST_ROWS:
        return {}
    measure = _rank_correlation if kind == "regression" else _by_range
    found = {}
    for name, values in columns.items():
        score = measure(kind, label, values[there])
        if score is not None:
            found[name] = score
    return found


def _rank_correlation(kind: LabelKind, label: Floats, values: Floats) -> float | None:
    there = ~np.isnan(values)
    if there.mean() < 0.5 or there.sum() < _LEAST_ROWS:
        return None
    ours, theirs = _ranks(values[there]), _ranks(label[there])
    if not ours.std() or not theirs.std():
        return None
    return float(abs(np.corrcoef(ours, theirs)[0, 1]))


def _ranks(values: Floats) -> Floats:
    """Ranks from 0, equal values at the middle of theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    middle: Floats = ends - (counts + 1) / 2
    return middle[place]


def _by_range(kind: LabelKind, label: Floats, values: Floats) -> float | None:
    classes, label_place = np.unique(label, return_inverse=True)
    half = np.arange(len(label)) % 2 == 0
    counts = np.bincount(label_place, minlength=len(classes))
    kept = counts >= _LEAST_OF_CLASS
    if kept.sum() < 2:
        return None
    places = _places(values)
    table = np.zeros((places.max() + 1, len(classes)))
    np.add.at(table, (places[half], label_place[half]), 1)
    if kind == "binary":
        return _auc(table, places[~half], label_place[~half])
    told = table.argmax(axis=1)
    unseen = table.sum(axis=1) == 0
    most_frequent = int(counts.argmax())
    told[unseen] = most_frequent
    right = (told[places[~half]] == label_place[~half]).mean()
    guess = (label_place[~half] == most_frequent).mean()
    return float(max(right - guess, 0) / (1 - guess))


def _places(values: Floats) -> npt.NDArray[np.int64]:
    """Numbers each different value, or range of about as many rows; the first is "missing"."""
    missing = np.isnan(values)
    found, place, counts = np.unique(values[~missing], return_inverse=True, return_counts=True)
    if len(found) > _RANGES:
        before = np.cumsum(counts) - counts
        place = (before * _RANGES // max(counts.sum(), 1))[place]
    places = np.zeros(len(values), np.int64)
    places[~missing] = place + 1
    return places


def _auc(table: Floats, places: npt.NDArray[np.int64], label: Array) -> float:
    """Area under the ROC curve of the share of positives that each place had."""
    seen = table.sum(axis=1)
    overall = table[:, 1].sum() / max(seen.sum(), 1)
    share = (table[:, 1] + overall) / (seen + 1)
    ranks = _ranks(share[places])
    positive = label == 1
    positives, negatives = positive.sum(), (~positive).sum()
    if not positives or not negatives:
        return 0.5
    area = ranks[positive].sum() - positives * (positives - 1) / 2
    return float(area / (positives * negatives))
