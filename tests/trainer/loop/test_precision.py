"""Sixteen bits: near the float32 weights, equal on all replicas, safe against overflow."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests.steps import TOLERANCE, Train, difference
from trainer.loop.precision import LossScale

# Weights of twenty steps at rate 0.01, computed with three significant digits.
SIXTEEN_BITS = 5e-3


@pytest.mark.parametrize("precision", ["float16", "bfloat16"])
def test_sixteen_bits_stay_near_float32_and_replicas_agree(train: Train, precision: str) -> None:
    # SGD: Adam makes whole steps of gradients that rounding has turned around.
    one = train(precision=precision, optimizer="sgd")
    assert one["skipped"] == 0
    assert difference(one, train(optimizer="sgd")) <= SIXTEEN_BITS
    assert difference(train(precision=precision, optimizer="sgd", cpus=2), one) <= SIXTEEN_BITS


def test_a_documented_loop_scales_the_loss_of_float16(train: Train) -> None:
    """keras#20894, keras#19479: a custom loop had no way to scale; gradients of 1e-8 came to 0."""
    outcome = train(precision="float16", loss_scale_growth_steps=5)
    assert outcome["loss_scale"] == 2**15 * 2**4  # doubled at steps 5, 10, 15 and 20
    assert outcome["skipped"] == 0
    assert "loss_scale" not in outcome["logged"]  # the run's own log has it, the loop's does not


@pytest.mark.parametrize("where", [{"cpus": 2}, {"workers": 2}])
def test_an_overflow_in_one_replica_halves_the_scale_of_all(
    train: Train, where: dict[str, int]
) -> None:
    """keras#18666, keras#21366: all skip that step, nothing hangs, no weight is NaN."""
    outcome = train(precision="float16", infinity_at=5, optimizer="sgd", **where)
    assert outcome["skipped"] == 1
    assert outcome["loss_scale"] == 2**14
    assert np.isfinite(outcome["weights"]).all()
    assert (
        difference(outcome, train(precision="float16", infinity_at=5, optimizer="sgd"))
        <= SIXTEEN_BITS
    )


def test_the_scale_halves_doubles_and_keeps_its_bounds() -> None:
    scale = LossScale(4.0, growth_steps=2)

    def after(*good: bool) -> float:
        for one in good:
            scale.note(tf.constant(one))
        return float(scale.value)

    assert after(True) == 4
    assert after(True) == 8  # the second finite step in a row
    assert after(True, False) == 4  # begins to count anew
    assert after(True, True) == 8
    assert after(*[False] * 5) == 1


def test_gradients_may_travel_in_bfloat16(train: Train) -> None:
    # Not Adam, which divides by the gradient's own size: of a tiny one rounding decides the sign.
    whole = train(optimizer="sgd")
    rounded = train(reduce_dtype="bfloat16", workers=2, optimizer="sgd")
    assert 0 < difference(rounded, whole) <= SIXTEEN_BITS
    assert rounded["losses"] == pytest.approx(whole["losses"], abs=SIXTEEN_BITS)


def test_losses_travel_whole_beside_bfloat16_gradients(train: Train) -> None:
    still = {"warmup_steps": 10**9}  # weights hardly move
    sent = train(reduce_dtype="bfloat16", workers=2, **still)
    assert sent["losses"] == pytest.approx(train(**still)["losses"], abs=TOLERANCE)


def test_the_time_of_the_all_reduce_is_logged_where_there_is_one(train: Train) -> None:
    assert "allreduce_seconds" in train(cpus=2)["logged"]
    assert "allreduce_seconds" not in train()["logged"]
