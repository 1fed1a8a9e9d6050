"""The figures equal scikit-learn's, weighted, and say why where they have no value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn import metrics as reference

from components.evaluate_model.metrics import NAMES, measure
from components.evaluate_model.scored import Scored

RNG = np.random.default_rng(0)
N = 500


def _binary(rows: int = N) -> Scored:
    label = RNG.integers(0, 2, rows).astype(float)
    output = np.clip(0.5 * label + RNG.random(rows) * 0.5, 0, 1)
    return Scored("binary", label, RNG.uniform(0.5, 2, rows), output)


def _multiclass(classes: int = 4) -> Scored:
    label = RNG.integers(0, classes, N)
    output = RNG.random((N, classes)) + np.eye(classes)[label]
    output /= output.sum(axis=1, keepdims=True)
    return Scored("multiclass", label.astype(float), RNG.uniform(0.5, 2, N), output)


def test_binary_figures_equal_scikit_learns() -> None:
    rows = _binary()
    y, p, w = rows.label, rows.output, rows.weight
    hard: dict[str, Any] = {"y_true": y, "y_pred": p >= 0.5, "sample_weight": w}
    expected = {
        "log_loss": reference.log_loss(y, p, sample_weight=w),
        "auc": reference.roc_auc_score(y, p, sample_weight=w),
        "pr_auc": reference.average_precision_score(y, p, sample_weight=w),
        "accuracy": reference.accuracy_score(**hard),
        "precision": reference.precision_score(**hard),
        "recall": reference.recall_score(**hard),
        "f1": reference.f1_score(**hard),
        "brier": reference.brier_score_loss(y, p, sample_weight=w),
        "base_rate": np.average(y, weights=w),
    }
    found = measure(rows).values
    assert list(found) == list(NAMES["binary"])
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, abs=1e-6), name


def test_a_class_that_is_never_predicted_counts_as_0() -> None:
    """Left out of the mean, a model that always says the same would look precise."""
    label = np.array([0.0, 1, 2, 2, 2])
    rows = Scored("multiclass", label, np.ones(5), np.tile([0.1, 0.2, 0.7, 0.0], (5, 1)))
    found = measure(rows).values
    for name, score in (
        ("precision", reference.precision_score),
        ("recall", reference.recall_score),
        ("f1", reference.f1_score),
    ):
        expected = score(label, np.full(5, 2), average="macro", zero_division=0)
        assert found[name] == pytest.approx(expected), name


def test_multiclass_figures_equal_scikit_learns() -> None:
    rows = _multiclass()
    y, p, w = rows.label.astype(int), rows.output, rows.weight
    hard: dict[str, Any] = {"y_true": y, "y_pred": p.argmax(axis=1), "sample_weight": w}
    found = measure(rows).values
    areas = reference.roc_auc_score(y, p, sample_weight=w, multi_class="ovr", average="macro")
    expected = {
        "log_loss": reference.log_loss(y, p, sample_weight=w),
        "auc": areas,
        "accuracy": reference.accuracy_score(**hard),
        "precision": reference.precision_score(**hard, average="macro"),
        "recall": reference.recall_score(**hard, average="macro"),
        "f1": reference.f1_score(**hard, average="macro"),
    }
    assert list(found) == list(NAMES["multiclass"])
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, abs=1e-6), name


def test_regression_figures_equal_scikit_learns() -> None:
    y, w = RNG.normal(size=N), RNG.uniform(0.5, 2, N)
    p = y + RNG.normal(0.2, 0.5, N)
    found = measure(Scored("regression", y, w, p)).values
    assert found == pytest.approx(
        {
            "rmse": reference.root_mean_squared_error(y, p, sample_weight=w),
            "mae": reference.mean_absolute_error(y, p, sample_weight=w),
            "r2": reference.r2_score(y, p, sample_weight=w),
            "bias": np.average(p - y, weights=w),
        }
    )


def test_calibration_error_is_the_weighted_gap_of_the_bins() -> None:
    # Bin [0.2, 0.3): mean 0.25, half come true; bin [0.9, 1]: mean 0.95, all do. 4 rows.
    rows = Scored("binary", np.array([0.0, 1, 1, 1]), np.ones(4), np.array([0.25, 0.25, 0.9, 1.0]))
    expected = 0.5 * abs(0.25 - 0.5) + 0.5 * abs(0.95 - 1)
    assert measure(rows).values["calibration_error"] == pytest.approx(expected)


def test_one_class_only_has_null_instead_of_nan_and_says_why() -> None:
    found = measure(Scored("binary", np.zeros(5), np.ones(5), np.full(5, 0.1)))
    assert found.values["auc"] is None
    assert found.reasons["auc"] == "the rows are all of one class"
    assert found.values["recall"] is None
    assert found.values["precision"] is None
    assert found.values["accuracy"] == 1
    assert found.values["log_loss"] == pytest.approx(-np.log(0.9))


def test_a_slice_without_some_classes_is_averaged_over_those_it_has() -> None:
    rows = _multiclass()
    part = rows.take(rows.label < 2)
    areas = [
        reference.roc_auc_score(part.label == c, part.output[:, c], sample_weight=part.weight)
        for c in (0, 1)
    ]
    assert measure(part).values["auc"] == pytest.approx(np.mean(areas))


def test_equal_labels_have_no_r2() -> None:
    found = measure(Scored("regression", np.ones(3), np.ones(3), np.array([0.9, 1, 1.1])))
    assert found.values["r2"] is None
    assert found.reasons == {"r2": "all labels are equal"}


def test_rows_without_weight_do_not_count() -> None:
    rows = _binary()
    heavy = rows.weight > 1
    light = Scored(rows.kind, rows.label, np.where(heavy, rows.weight, 0), rows.output)
    assert measure(light).values == pytest.approx(measure(rows.take(heavy)).values)


def test_no_rows_have_no_figures() -> None:
    found = measure(_binary(10).take(np.zeros(10, bool)))
    assert set(found.values.values()) == {None}
    assert set(found.reasons) == set(NAMES["binary"])


def test_a_certain_wrong_answer_costs_a_finite_log_loss() -> None:
    found = measure(Scored("binary", np.array([1.0, 0]), np.ones(2), np.array([0.0, 1.0])))
    assert found.values["log_loss"] == pytest.approx(-np.log(np.finfo(np.float32).eps))
