"""Keras 3's `model.fit`, as it comes (`default`) and at the best setting that works (`best`).

The gradient norm comes from a `train_step` as Keras' guides write it. `best`: as many steps an
execution as ours a call, with or without XLA, whichever is faster here. On one device only, as
`steps_per_execution` fails under a strategy.
"""

import time
from typing import Any

import keras
import tensorflow as tf

from tests.benchmarks.steps.case import (
    DECAY_STEPS,
    LEARNING_RATE,
    PREFETCH_STEPS,
    STEPS_PER_CALL,
    Case,
)
from tests.benchmarks.steps.turns import Turns

SETTINGS: tuple[dict[str, Any], ...] = (
    {"steps_per_execution": STEPS_PER_CALL, "jit_compile": True},
    {"steps_per_execution": STEPS_PER_CALL, "jit_compile": False},
)


def train_default(case: Case, place: str, turns: Turns) -> None:
    _fit(case, {}, _Boundaries(turns))


def train_best(case: Case, place: str, turns: Turns) -> None:
    trials = []
    for setting in SETTINGS:
        trial = _Trial()
        _fit(case, setting, trial)
        trials.append(trial.seconds)
    best = SETTINGS[trials.index(min(trials))]
    print(f"best of {dict(zip(map(str, SETTINGS), trials, strict=True))}: {best}")
    _fit(case, best, _Boundaries(turns))


def _fit(case: Case, setting: dict[str, Any], callback: keras.callbacks.Callback) -> None:
    plain = case.model(keras)
    model = Normed(plain.inputs, plain.outputs)
    schedule = keras.optimizers.schedules.CosineDecay(LEARNING_RATE, DECAY_STEPS)
    model.compile(
        keras.optimizers.AdamW(schedule),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        **setting,
    )
    model.fit(
        case.batches().prefetch(PREFETCH_STEPS), steps_per_epoch=case.turn, epochs=10**9,
        callbacks=[callback], verbose=2,
    )  # fmt: skip


class Normed(keras.Model):
    """A model that also reports the gradient norm."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.loss_mean = keras.metrics.Mean("loss")
        self.norm_mean = keras.metrics.Mean("gradient_norm")

    @property
    def metrics(self) -> list[keras.metrics.Metric]:
        return [self.loss_mean, self.norm_mean]

    def train_step(self, data: Any) -> dict[str, tf.Tensor]:
        features, labels = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(y=labels, y_pred=self(features, training=True))
        gradients = tape.gradient(loss, [v.value for v in self.trainable_variables])
        self.optimizer.apply(gradients, self.trainable_variables)
        self.loss_mean.update_state(loss)
        self.norm_mean.update_state(tf.linalg.global_norm(gradients))
        return {metric.name: metric.result() for metric in self.metrics}


class _Boundaries(keras.callbacks.Callback):
    def __init__(self, turns: Turns) -> None:
        super().__init__()
        self._turns = turns

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._turns.boundary()


class _Trial(keras.callbacks.Callback):
    """Times the second epoch, and stops."""

    seconds = 0.0

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._began = time.perf_counter()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.seconds = time.perf_counter() - self._began
        self.model.stop_training = epoch == 1
