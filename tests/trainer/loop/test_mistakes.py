"""Mistakes of a user's Task that would train something else, or nothing, without a word."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import pytest
import tensorflow as tf

from tests.datasets import make_dataset
from trainer.config import TrainConfig
from trainer.errors import UsageError
from trainer.loop.optimizer import make_optimizers
from trainer.loop.step import TrainStep
from trainer.task import Batch, Task
from trainer.tasks import build_task


class Plain(Task):
    """One dense layer; the loss is what the test gives."""

    def __init__(self, change: Callable[[tf.Tensor], Any] = lambda rows: rows) -> None:
        super().__init__()
        self.change = change
        self.model = keras.Sequential([keras.Input([2]), keras.layers.Dense(1)])

    def loss(self, batch: Batch, training: bool) -> tf.Tensor:
        return self.change(self.model(batch.features["x"])[:, 0] - batch.label)


class Unbuilt(Task):
    """Its weights would come into being inside the first step."""

    def build(self, data: Any) -> None:
        self.model = keras.Sequential([keras.layers.Dense(1)])


def step_once(task: Task) -> Any:
    config = TrainConfig(data="d", output="o", steps=1, global_batch=4)
    step = TrainStep(task, tf.distribute.get_strategy(), make_optimizers(task, config), config)
    batches = ({"x": tf.ones([1, 4, 2])}, tf.zeros([1, 4]), tf.ones([1, 4]))
    return step(batches, first=0, count=1, step=0, nonfinite_run=tf.constant(0))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda rows: rows[:, None], r"shape \(4, 1\), not \(4,\): return one value a row"),
        (tf.reduce_mean, r"shape \(\), not \(4,\)"),
        (lambda rows: 1.0, r"shape \(\), not \(4,\)"),
        (tf.ones_like, "trains nothing: its loss depends on none of its 2 variables"),
    ],
)
def test_a_loss_that_is_not_one_value_a_row_or_trains_nothing(
    change: Callable[[tf.Tensor], Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        step_once(Plain(change))


def test_a_frozen_model_trains_nothing() -> None:
    task = Plain()
    task.model.trainable = False
    with pytest.raises(UsageError, match="objective 'loss' has no variables to train"):
        step_once(task)


def test_a_loss_of_another_precision_is_cast() -> None:
    outcome = step_once(Plain(lambda rows: tf.cast(rows**2, tf.float64)))
    assert outcome.losses.dtype == tf.float32
    assert int(outcome.finite) == 1


def test_a_model_without_weights_is_refused(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path, rows=200)
    config = TrainConfig(data=str(tmp_path), output="o", task=f"{__name__}:Unbuilt")
    with pytest.raises(UsageError, match="left model without weights"):
        build_task(config, dataset)
