"""Adam and AdamW in one op: Keras' formulas, slots and names."""

from __future__ import annotations

from functools import partial
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from trainer.config import TrainConfig
from trainer.loop.optimizer import make_optimizer

STEPS = 6


def _config(name: str) -> TrainConfig:
    return TrainConfig.model_validate(
        {
            "data": "d", "output": "o", "steps": 50, "optimizer": name, "learning_rate": 0.05,
            "weight_decay": 0.1, "schedule": "cosine", "warmup_steps": 3,
        }
    )  # fmt: skip


def _theirs(name: str, rate: keras.optimizers.schedules.LearningRateSchedule) -> keras.Optimizer:
    if name == "adam":
        return keras.optimizers.Adam(rate)
    return keras.optimizers.AdamW(rate, weight_decay=0.1)


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("name", ["adam", "adamw"])
def test_it_is_keras_own_adam(name: str, jit: bool) -> None:
    draw = np.random.default_rng(0)
    shapes = [(5, 3), (3,), ()]
    gradients = [
        [tf.constant(draw.normal(size=shape), tf.float32) for shape in shapes] for _ in range(STEPS)
    ]
    first = [draw.normal(size=shape).astype("f4") for shape in shapes]
    mine = make_optimizer(_config(name))
    found = []
    for optimizer in (mine, _theirs(name, mine._learning_rate)):
        variables = [keras.Variable(v, name=f"v{n}") for n, v in enumerate(first)]
        optimizer.build(variables)
        update = partial(_apply, optimizer, variables)
        apply = tf.function(update, jit_compile=jit, autograph=False)
        for step in gradients:
            apply(step)
        found.append({v.path.split("/", 1)[-1]: v.numpy() for v in optimizer.variables})
        found[-1] |= {f"weight {n}": v.numpy() for n, v in enumerate(variables)}
    assert list(found[0]) == list(found[1])
    for key, value in found[0].items():
        np.testing.assert_allclose(value, found[1][key], rtol=2e-6, atol=2e-6, err_msg=key)


def _apply(optimizer: Any, variables: list[Any], gradients: list[tf.Tensor]) -> None:
    optimizer.apply(gradients, variables)
