"""Reported faults of steps and metrics: what must hold."""

from __future__ import annotations

import numpy as np
import pytest

from tests.steps import TOLERANCE, Train, difference


def test_microbatches_are_one_big_batch(train: Train) -> None:
    """keras#20582: accumulation works, and on every strategy."""
    assert difference(train(microbatches=4), train()) <= TOLERANCE
    assert difference(train(microbatches=4, cpus=2), train()) <= TOLERANCE


def test_the_global_gradient_is_clipped(train: Train) -> None:
    """TF#33929, TF#25806: not each replica's before the reduce."""
    clipped = train(clip_norm=0.05, cpus=2, optimizer="sgd")
    assert difference(clipped, train(clip_norm=0.05, optimizer="sgd")) <= TOLERANCE
    assert difference(clipped, train(optimizer="sgd")) > 100 * TOLERANCE


def test_the_reported_loss_is_the_global_mean(train: Train) -> None:
    """keras#15509: not the first replica's."""
    assert train(cpus=2)["losses"] == pytest.approx(train()["losses"], abs=TOLERANCE)


@pytest.mark.parametrize("where", [{"cpus": 2}, {"workers": 2}])
def test_an_infinity_in_one_replica_is_skipped_by_all(train: Train, where: dict[str, int]) -> None:
    """keras#18666, torchtitan PR#4226: no NaN weights, no hang, the step is counted."""
    outcome = train(infinity_at=5, **where)
    assert np.isfinite(outcome["weights"]).all()
    assert outcome["skipped"] == 1
    assert difference(outcome, train(infinity_at=5)) <= TOLERANCE
    assert difference(outcome, train()) > TOLERANCE


def test_dropout_builds_in_scope_and_masks_differ_between_replicas(train: Train) -> None:
    """keras#20611: replicas with equal rows would draw the same mask from Keras' mirrored seed."""
    outcome = train(cpus=2, dropout=0.5)
    assert np.isfinite(outcome["weights"]).all()
    first, second = outcome["masks"]
    assert (first != second).any()
    assert difference(outcome, train(cpus=2, dropout=0.5, steps_per_call=7)) <= TOLERANCE


def test_predictions_hold_each_row_once_on_any_number_of_replicas(train: Train) -> None:
    """TF#61231, TF#37112: a tail that does not fill the replicas neither hangs nor repeats."""
    one, two, workers = train(), train(cpus=2), train(workers=2)
    assert one["row_id"].tolist() == sorted(set(one["row_id"].tolist()))
    assert len(one["row_id"]) == 300
    for other in (two, workers):
        assert other["row_id"].tolist() == one["row_id"].tolist()
        assert np.abs(other["outputs"] - one["outputs"]).max() <= TOLERANCE
        assert other["labels"].tolist() == one["labels"].tolist()


def test_an_action_that_needs_a_collective_is_run_by_all_workers(train: Train) -> None:
    """raydp#447: evaluation by the chief alone would wait for the others for ever."""
    outcome = train(workers=2)
    assert len(outcome["row_id"]) == 300


def test_the_metrics_of_several_replicas_are_finite_and_those_of_one(train: Train) -> None:
    """keras#21061, #21467, #20601: metrics turned NaN under a strategy."""
    for where in ({"cpus": 2}, {"workers": 2}):
        losses = train(**where)["losses"]
        assert np.isfinite(losses).all()
        assert losses == pytest.approx(train()["losses"], abs=TOLERANCE)


@pytest.mark.timeout(120)
def test_the_optimizer_applies_under_mirrored_and_comes_back(train: Train) -> None:
    """TF#72686: applying gradients under MirroredStrategy hung for ever."""
    outcome = train(cpus=2)
    assert outcome["skipped"] == 0
    assert difference(outcome, train()) <= TOLERANCE
