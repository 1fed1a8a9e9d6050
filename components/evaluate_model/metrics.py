"""One number each: the metrics of a set of rows, weighted, or the reason why one has no value.

Binary, at threshold 0.5 where one is needed: auc, pr_auc (average precision), log_loss, accuracy,
precision, recall, f1, brier, calibration_error, base_rate. Multiclass: accuracy, auc (mean over
classes of one against the rest), log_loss, precision, recall, f1 (means over classes),
calibration_error (of the chosen class). Regression: rmse, mae, r2, bias (mean of prediction minus
label).

calibration_error is the expected calibration error over 10 equal-width bins b of the score:
sum_b (weight_b / weight) * |mean score_b - share that came true_b|.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from components.evaluate_model.evaluation import Metrics
from components.evaluate_model.scored import Floats, Scored
from trainer.data.manifest import LabelKind

BINS = 10
# One sort of all rows a class: beyond this many classes the figure costs more than it tells.
MOST_AUC_CLASSES = 200
# A float32 probability cannot say more than this: 1 - 2**-24 and 1 are neighbours.
SMALLEST_PROBABILITY = float(np.finfo(np.float32).eps)

NAMES: dict[LabelKind, tuple[str, ...]] = {
    "binary": (
        "auc", "pr_auc", "log_loss", "accuracy", "precision", "recall", "f1", "brier",
        "calibration_error", "base_rate",
    ),
    "multiclass": (
        "accuracy", "auc", "log_loss", "precision", "recall", "f1", "calibration_error",
    ),
    "regression": ("rmse", "mae", "r2", "bias"),
}  # fmt: skip
LOWER_IS_BETTER = frozenset({"log_loss", "brier", "calibration_error", "rmse", "mae"})
NO_DIRECTION = frozenset({"base_rate", "bias"})


class Undefined(Exception):
    """The metric has no value on these rows; the text says why."""


@dataclass(frozen=True)
class Measured:
    """`values`: every metric of the label's kind; `reasons`: why some are None."""

    values: Metrics
    reasons: dict[str, str] = field(default_factory=dict)


def measure(rows: Scored) -> Measured:
    """Returns the metrics of `rows`; those that have no value there are None with a reason."""
    counted = rows.weighted()
    compute = {"binary": _binary, "multiclass": _multiclass, "regression": _regression}[rows.kind]
    if counted.rows == 0:
        return Measured(
            dict.fromkeys(NAMES[rows.kind]), dict.fromkeys(NAMES[rows.kind], "there are no rows")
        )
    values: Metrics = {}
    reasons: dict[str, str] = {}
    computed = compute(counted)
    for name in NAMES[rows.kind]:
        try:
            values[name] = float(computed[name]())
        except Undefined as why:
            values[name], reasons[name] = None, str(why)
    return Measured(values, reasons)


_Computed = dict[str, Callable[[], float]]


def _binary(rows: Scored) -> _Computed:
    positive, chosen = rows.label == 1, rows.chosen == 1
    weight, score = rows.weight, rows.output

    def weigh(mask: npt.NDArray[np.bool_]) -> float:
        return float(weight[mask].sum())

    true_positive = weigh(positive & chosen)
    return {
        "log_loss": lambda: _mean(_surprise(np.where(positive, score, 1 - score)), weight),
        "auc": lambda: one_against_rest(positive, score, weight),
        "pr_auc": lambda: _average_precision(positive, score, weight),
        "accuracy": lambda: _mean(positive == chosen, weight),
        "precision": lambda: _ratio(true_positive, weigh(chosen), "no row is predicted positive"),
        "recall": lambda: _ratio(true_positive, weigh(positive), "there are no positive rows"),
        "f1": lambda: _ratio(
            2 * true_positive, weigh(positive) + weigh(chosen), "no row is or is predicted positive"
        ),
        "brier": lambda: _mean((score - positive) ** 2, weight),
        "calibration_error": lambda: calibration_error(score, positive, weight),
        "base_rate": lambda: _mean(positive, weight),
    }


def _multiclass(rows: Scored) -> _Computed:
    label, weight = rows.label.astype(np.int64), rows.weight
    hit = rows.chosen == label
    by_class = per_class(rows)
    return {
        "log_loss": lambda: _mean(_surprise(rows.output[np.arange(rows.rows), label]), weight),
        "auc": lambda: _macro_auc(rows),
        "accuracy": lambda: _mean(hit, weight),
        "precision": lambda: _macro(by_class.precision, by_class),
        "recall": lambda: _macro(by_class.recall, by_class),
        "f1": lambda: _macro(by_class.f1, by_class),
        "calibration_error": lambda: calibration_error(rows.output.max(axis=1), hit, weight),
    }


def _regression(rows: Scored) -> _Computed:
    weight = rows.weight
    residual = rows.output - rows.label
    spread = _mean((rows.label - _mean(rows.label, weight)) ** 2, weight)
    return {
        "rmse": lambda: float(np.sqrt(_mean(residual**2, weight))),
        "mae": lambda: _mean(np.abs(residual), weight),
        "r2": lambda: 1 - _ratio(_mean(residual**2, weight), spread, "all labels are equal"),
        "bias": lambda: _mean(residual, weight),
    }


def _mean(values: npt.NDArray[np.generic], weight: Floats) -> float:
    return float(np.average(values.astype(np.float64), weights=weight))


def _ratio(part: float, whole: float, why: str) -> float:
    if whole <= 0:
        raise Undefined(why)
    return part / whole


def _surprise(probability: Floats) -> Floats:
    """-log of the probability that was given to what happened."""
    return np.asarray(-np.log(np.clip(probability, SMALLEST_PROBABILITY, 1)))


def one_against_rest(positive: npt.NDArray[np.bool_], score: Floats, weight: Floats) -> float:
    """Returns the area under the ROC curve; Undefined without both kinds of rows."""
    from sklearn.metrics import roc_auc_score

    if positive.all() or not positive.any():
        raise Undefined("the rows are all of one class")
    return float(roc_auc_score(positive, score, sample_weight=weight))


def _average_precision(positive: npt.NDArray[np.bool_], score: Floats, weight: Floats) -> float:
    from sklearn.metrics import average_precision_score

    if not positive.any():
        raise Undefined("there are no positive rows")
    return float(average_precision_score(positive, score, sample_weight=weight))


def _macro_auc(rows: Scored) -> float:
    there = np.unique(rows.label.astype(np.int64))
    if len(there) < 2:
        raise Undefined("the rows are all of one class")
    if len(there) > MOST_AUC_CLASSES:
        raise Undefined(f"there are more than {MOST_AUC_CLASSES} classes")
    areas = [one_against_rest(rows.label == c, rows.output[:, c], rows.weight) for c in there]
    return float(np.mean(areas))


def _macro(figure: Floats, by_class: PerClass) -> float:
    """Returns the mean over the classes that are labelled or predicted; nothing to divide is 0.

    A class that is there and never predicted has no precision: left out, the mean would flatter.
    """
    seen = ~np.isnan(by_class.f1)
    return float(np.nan_to_num(figure[seen]).mean())


@dataclass(frozen=True)
class PerClass:
    """Figures of each class against the rest [classes]; NaN where there is nothing to divide."""

    precision: Floats
    recall: Floats
    f1: Floats


def per_class(rows: Scored) -> PerClass:
    """Returns precision, recall and f1 of each class (binary: of [negative, positive])."""
    classes = 2 if rows.kind == "binary" else rows.output.shape[1]
    label = rows.label.astype(np.int64)
    there = np.bincount(label, rows.weight, classes)
    chosen = np.bincount(rows.chosen, rows.weight, classes)
    hit = np.bincount(label, rows.weight * (label == rows.chosen), classes)
    with np.errstate(invalid="ignore"):
        return PerClass(hit / chosen, hit / there, 2 * hit / (there + chosen))


def bin_of(score: Floats) -> npt.NDArray[np.int64]:
    """Returns the calibration bin of each score; 1 belongs to the last."""
    return np.clip((score * BINS).astype(np.int64), 0, BINS - 1)


def calibration_error(score: Floats, true: npt.NDArray[np.bool_], weight: Floats) -> float:
    """Returns the expected calibration error; the formula stands at the top of this module."""
    which = bin_of(score)
    gap = np.bincount(which, weight * score, BINS) - np.bincount(which, weight * true, BINS)
    return float(np.abs(gap).sum() / weight.sum())
