"""More than one number: curves, the confusion matrix, classes and bins behind the report's plots.

What goes into evaluation.json is thinned to at most 200 points a curve.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from components.evaluate_model.evaluation import (
    CalibrationBin,
    ClassFigures,
    Confusion,
    PrecisionRecall,
    Roc,
)
from components.evaluate_model.metrics import BINS, bin_of, per_class
from components.evaluate_model.scored import Scored

MOST_POINTS = 200
MOST_CONFUSION_CLASSES = 50
OTHER = "(other)"
RESIDUAL_QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


def roc(rows: Scored) -> Roc | None:
    """Returns the ROC curve of a binary label, or None without both classes."""
    from sklearn.metrics import roc_curve

    rows = rows.weighted()
    if rows.kind != "binary" or len(np.unique(rows.label)) < 2:
        return None
    fpr, tpr, thresholds = roc_curve(rows.label, rows.output, sample_weight=rows.weight)
    # The first threshold is infinite; just above every score says the same and is a number.
    thresholds[0] = np.nextafter(max(1.0, thresholds[1]), np.inf)
    keep = _thinned(np.hypot(np.diff(fpr, prepend=0), np.diff(tpr, prepend=0)))
    return Roc(
        fpr=tuple(fpr[keep].tolist()),
        tpr=tuple(tpr[keep].tolist()),
        thresholds=tuple(thresholds[keep].tolist()),
    )


def precision_recall(rows: Scored) -> PrecisionRecall | None:
    """Returns precision over recall of a binary label, or None without positive rows."""
    from sklearn.metrics import precision_recall_curve

    rows = rows.weighted()
    if rows.kind != "binary" or not np.any(rows.label == 1):
        return None
    precision, recall, _ = precision_recall_curve(
        rows.label, rows.output, sample_weight=rows.weight
    )
    precision, recall = precision[::-1], recall[::-1]
    keep = _thinned(np.hypot(np.diff(recall, prepend=0), np.diff(precision, prepend=1)))
    return PrecisionRecall(
        recall=tuple(recall[keep].tolist()), precision=tuple(precision[keep].tolist())
    )


def _thinned(lengths: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Returns indices of at most MOST_POINTS points, both ends kept, evenly along the curve.

    lengths: of the piece before each point [n].
    """
    if len(lengths) <= MOST_POINTS:
        return np.arange(len(lengths))
    along = np.cumsum(lengths)
    wanted = np.linspace(along[0], along[-1], MOST_POINTS - 1)
    inner = np.searchsorted(along, wanted)
    ends = [0, len(lengths) - 1]
    return np.unique(np.concatenate([ends, np.clip(inner, 0, len(lengths) - 1)]))


def confusion(rows: Scored, classes: Sequence[str]) -> Confusion:
    """Returns the confusion matrix; `classes` names the label's classes in their order."""
    rows = rows.weighted()
    label, chosen = rows.label.astype(np.int64), rows.chosen
    names = list(classes)
    if len(names) > MOST_CONFUSION_CLASSES:
        counts = np.bincount(label, minlength=len(names))
        kept = np.sort(np.argsort(-counts, kind="stable")[: MOST_CONFUSION_CLASSES - 1])
        place = np.full(len(names), len(kept))
        place[kept] = np.arange(len(kept))
        names = [names[i] for i in kept] + [OTHER]
        label, chosen = place[label], place[chosen]
    size = len(names)
    cells = np.bincount(label * size + chosen, rows.weight, size * size).reshape(size, size)
    return Confusion(classes=tuple(names), matrix=tuple(map(tuple, cells.tolist())))


def class_figures(rows: Scored, classes: Sequence[str]) -> tuple[ClassFigures, ...]:
    """Returns precision, recall and f1 of every class of a multiclass label."""
    rows = rows.weighted()
    counts = np.bincount(rows.label.astype(np.int64), minlength=len(classes))
    found = per_class(rows)

    def number(value: float) -> float | None:
        return None if np.isnan(value) else float(value)

    return tuple(
        ClassFigures(
            name=name,
            rows=int(counts[i]),
            precision=number(found.precision[i]),
            recall=number(found.recall[i]),
            f1=number(found.f1[i]),
        )
        for i, name in enumerate(classes)
    )


def calibration(rows: Scored) -> tuple[CalibrationBin, ...]:
    """Returns the bins that have rows, of the positive class or of the class that was chosen."""
    rows = rows.weighted()
    if rows.kind == "binary":
        score, true = rows.output, rows.label == 1
    else:
        score, true = rows.output.max(axis=1, initial=0), rows.chosen == rows.label
    which = bin_of(score)
    weight = np.bincount(which, rows.weight, BINS)
    scores = np.bincount(which, rows.weight * score, BINS)
    trues = np.bincount(which, rows.weight * true, BINS)
    counts = np.bincount(which, minlength=BINS)
    return tuple(
        CalibrationBin(
            low=b / BINS,
            high=(b + 1) / BINS,
            rows=int(counts[b]),
            score=float(scores[b] / weight[b]),
            rate=float(trues[b] / weight[b]),
        )
        for b in range(BINS)
        if counts[b]
    )


def residual_quantiles(rows: Scored) -> dict[str, float]:
    """Returns weighted quantiles of prediction minus label, keyed "0", "0.05", …, "1"."""
    rows = rows.weighted()
    if rows.rows == 0:
        return {}
    values = np.quantile(
        rows.output - rows.label, RESIDUAL_QUANTILES, method="inverted_cdf", weights=rows.weight
    )
    return {f"{q:g}": float(v) for q, v in zip(RESIDUAL_QUANTILES, values, strict=True)}
