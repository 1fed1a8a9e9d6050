"""Curves stay short and finite, tables keep every row."""

from __future__ import annotations

import numpy as np
import pytest

from components.evaluate_model import curves
from components.evaluate_model.metrics import measure
from components.evaluate_model.scored import Scored

RNG = np.random.default_rng(1)


def _binary(rows: int = 20_000) -> Scored:
    label = (RNG.random(rows) < 0.2).astype(float)
    output = 1 / (1 + np.exp(-RNG.normal(2 * label - 1, 1)))
    return Scored("binary", label, np.ones(rows), output.astype(np.float32).astype(float))


def test_a_thinned_roc_curve_keeps_its_area() -> None:
    rows = _binary()
    found = curves.roc(rows)
    assert found is not None
    assert len(found.fpr) == len(found.tpr) == len(found.thresholds) <= curves.MOST_POINTS
    assert np.isfinite(found.thresholds).all()
    assert (np.diff(found.thresholds) < 0).all()
    assert (found.fpr[0], found.tpr[0], found.fpr[-1], found.tpr[-1]) == (0, 0, 1, 1)
    area = np.trapezoid(found.tpr, found.fpr)
    assert area == pytest.approx(measure(rows).values["auc"], abs=1e-3)


def test_a_thinned_precision_recall_curve_keeps_its_ends() -> None:
    found = curves.precision_recall(_binary())
    assert found is not None
    assert len(found.recall) <= curves.MOST_POINTS
    assert (np.diff(found.recall) >= 0).all()
    assert (found.recall[0], found.recall[-1]) == (0, 1)


def test_one_class_has_no_roc_curve() -> None:
    one = Scored("binary", np.zeros(4), np.ones(4), np.linspace(0, 1, 4))
    assert curves.roc(one) is None
    assert curves.precision_recall(one) is None


def test_the_confusion_matrix_is_at_one_half() -> None:
    rows = Scored(
        "binary", np.array([0.0, 0, 1, 1]), np.array([1.0, 2, 3, 4]), np.array([0.5, 0.4, 0.6, 0.1])
    )
    found = curves.confusion(rows, ["no", "yes"])
    assert found.classes == ("no", "yes")
    assert found.matrix == ((2, 1), (4, 3))


def test_many_classes_become_one_other_class() -> None:
    classes = 120
    label = RNG.integers(0, classes, 5000).astype(float)
    rows = Scored("multiclass", label, np.ones(5000), RNG.random((5000, classes)))
    found = curves.confusion(rows, [f"c{i}" for i in range(classes)])
    assert len(found.classes) == curves.MOST_CONFUSION_CLASSES
    assert found.classes[-1] == curves.OTHER
    assert np.sum(found.matrix) == 5000


def test_a_class_that_is_never_there_has_no_recall() -> None:
    rows = Scored("multiclass", np.array([0.0, 1]), np.ones(2), np.eye(3)[:2])
    a, b, c = curves.class_figures(rows, ["a", "b", "c"])
    assert (a.rows, a.precision, a.recall, a.f1) == (1, 1, 1, 1)
    assert b.rows == 1
    assert (c.rows, c.precision, c.recall, c.f1) == (0, None, None, None)


def test_calibration_bins_hold_all_rows() -> None:
    rows = _binary()
    bins = curves.calibration(rows)
    assert sum(b.rows for b in bins) == rows.rows
    assert all(b.low <= b.score <= b.high for b in bins)
    assert sum(b.rows * b.rate for b in bins) == pytest.approx(rows.label.sum())


def test_residual_quantiles_are_of_prediction_minus_label() -> None:
    rows = Scored("regression", np.zeros(101), np.ones(101), np.arange(101.0))
    found = curves.residual_quantiles(rows)
    assert (found["0"], found["0.05"], found["0.5"], found["1"]) == (0, 5, 50, 100)
