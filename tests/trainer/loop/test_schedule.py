"""The learning rate at chosen steps, against the formulas."""

from __future__ import annotations

import math
from typing import Any

import pytest

from trainer.config import TrainConfig
from trainer.loop.schedule import Schedule, peak_learning_rate


def config(**changes: Any) -> TrainConfig:
    return TrainConfig(data="d", output="o", **{"learning_rate": 0.1, **changes})


@pytest.mark.parametrize(
    ("rule", "peak"), [("none", 0.1), ("linear", 0.4), ("sqrt", 0.2)]
)  # fmt: skip
def test_the_rate_grows_with_the_batch_as_the_rule_says(rule: Any, peak: float) -> None:
    scaled = config(global_batch=1024, base_batch=256, batch_scaling=rule)
    assert peak_learning_rate(scaled) == pytest.approx(peak)


def test_warm_up_is_linear_and_the_cosine_ends_at_zero() -> None:
    rate = Schedule(config(warmup_steps=10), steps=110)
    assert float(rate(0)) == pytest.approx(0.01)
    assert float(rate(9)) == pytest.approx(0.1)
    assert float(rate(60)) == pytest.approx(0.1 * 0.5 * (1 + math.cos(math.pi / 2)), abs=1e-7)
    assert float(rate(110)) == pytest.approx(0, abs=1e-8)


def test_constant_stays() -> None:
    rate = Schedule(config(schedule="constant"), steps=10)
    assert float(rate(0)) == float(rate(9)) == pytest.approx(0.1)


def test_stairs_fall_where_they_are_put() -> None:
    rate = Schedule(config(schedule="step", decay_at=(10, 20), decay_factor=0.5), steps=30)
    assert [float(rate(step)) for step in (9, 10, 19, 20)] == pytest.approx(
        [0.1, 0.05, 0.05, 0.025]
    )
