"""Thresholds: how they are written, and that what has no value does not pass."""

from __future__ import annotations

import pytest

from components.evaluate_model import gate
from components.evaluate_model.evaluation import Metrics, SliceFigures, Verdict
from trainer.errors import UsageError

METRICS: Metrics = {"auc": 0.75, "log_loss": 0.4, "recall": None}
PARTS = (
    SliceFigures(slice={"carrier": "AA"}, rows=7, metrics={"auc": 0.5}),
    SliceFigures(slice={"delay": "[2, 7)"}, rows=9, metrics={"auc": 0.9}),
)


def _judge(*written: str, baseline: Metrics | None = None) -> Verdict:
    return gate.judge([gate.parse(w) for w in written], METRICS, 100, PARTS, baseline)


@pytest.mark.parametrize(
    ("rule", "passes"),
    [
        ("auc>=0.75", True),
        ("auc>0.75", False),
        (" auc <= 7.5e-1 ", True),
        ("auc<.75", False),
        ("log_loss<=0.4", True),
        ("auc[carrier=AA]>=0.6", False),
        ("auc[delay=[2, 7)]>=0.6", True),
    ],
)
def test_rules(rule: str, passes: bool) -> None:
    verdict = _judge(rule)
    assert verdict.passed is passes
    assert verdict.rules[0].rule == rule
    assert verdict.rules[0].value is not None


def test_every_rule_must_hold_and_none_is_enough() -> None:
    assert _judge().passed
    verdict = _judge("auc>=0.7", "auc>=0.8")
    assert [r.passed for r in verdict.rules] == [True, False]
    assert not verdict.passed
    assert verdict.rules[0].rows == 100


def test_a_figure_without_value_fails() -> None:
    for rule in ("recall>=0", "recall<=1", "auc[carrier=ZZ]>=0"):
        result = _judge(rule).rules[0]
        assert (result.value, result.passed) == (None, False)
        assert result.reason
    assert _judge("auc[carrier=ZZ]>=0").rules[0].rows == 0


def test_the_baseline_is_a_bound() -> None:
    theirs: Metrics = {"auc": 0.76, "log_loss": None}
    verdict = _judge("auc>=baseline", "auc>=baseline-0.02", baseline=theirs)
    assert [r.passed for r in verdict.rules] == [False, True]
    assert verdict.rules[1].bound == pytest.approx(0.74)
    assert not _judge("log_loss<=baseline", baseline=theirs).passed


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ("auc", "is not a rule: write it like"),
        ("auc=0.7", "is not a rule"),
        ("auc>=", "is not a rule"),
        ("auc>=0.7%", "is not a rule"),
        ("auc>=nan", "is not a rule"),
        ("auc>=baseline 0.1", "add or subtract"),
        ("auc[a=b]>=baseline", "compared with a number"),
    ],
)
def test_what_is_not_a_rule(rule: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        gate.parse(rule)


def test_an_unknown_metric_is_named_with_the_near_one_and_all() -> None:
    with pytest.raises(UsageError, match=r"'auk', did you mean 'auc'\? .*log_loss, "):
        gate.check([gate.parse("auk>=0.7")], "binary", has_baseline=False)
    with pytest.raises(UsageError, match="regression labels have rmse, mae, r2, bias"):
        gate.check([gate.parse("auc>=0.7")], "regression", has_baseline=False)
    with pytest.raises(UsageError, match="--baseline RUN"):
        gate.check([gate.parse("auc>=baseline")], "binary", has_baseline=False)
