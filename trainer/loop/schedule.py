"""The learning rate of a step: warm-up, decay, and how it grows with the global batch."""

from __future__ import annotations

import math
from typing import Any

import keras
import tensorflow as tf

from trainer.config import TrainConfig


def peak_learning_rate(config: TrainConfig) -> float:
    """Returns the rate after batch scaling.

    linear: rate * B / base (Goyal et al. 2017, for SGD); sqrt: rate * sqrt(B / base) (Krizhevsky
    2014, and the usual choice for Adam).
    """
    ratio = config.global_batch / (config.base_batch or config.global_batch)
    factor = {"none": 1.0, "linear": ratio, "sqrt": math.sqrt(ratio)}[config.batch_scaling]
    return config.learning_rate * factor


class Schedule(keras.optimizers.schedules.LearningRateSchedule):
    """rate(step): linear from 0 over the warm-up, then constant, or a cosine to 0 at `steps`.

    `step` counts applied updates: a skipped (non-finite) step does not move it.
    """

    def __init__(self, config: TrainConfig, steps: int) -> None:
        self.peak = peak_learning_rate(config)
        self.warmup_steps = config.warmup_steps
        self.decay_steps = max(steps - config.warmup_steps, 1)
        self.cosine = config.schedule == "cosine"

    def __call__(self, step: Any) -> tf.Tensor:
        """Returns the float32 rate of update number `step`, from 0."""
        now = tf.cast(step, tf.float32)
        rate = tf.constant(self.peak, tf.float32)
        if self.cosine:
            progress = tf.clip_by_value((now - self.warmup_steps) / self.decay_steps, 0.0, 1.0)
            rate = rate * 0.5 * (1.0 + tf.cos(math.pi * progress))
        if self.warmup_steps:
            rate = rate * tf.minimum((now + 1.0) / self.warmup_steps, 1.0)
        return rate

    def get_config(self) -> dict[str, Any]:
        """Never used: a run is described by its config.json."""
        return dict(vars(self))


def make_optimizer(config: TrainConfig, steps: int) -> keras.optimizers.Optimizer:
    """Returns the optimizer that `config` describes; call it inside the strategy's scope.

    Its own all-reduce is switched off: gradients arrive reduced, and Keras would clip and test
    for finiteness before its reduce instead of after.
    """
    schedule = Schedule(config, steps)
    if config.optimizer == "sgd":
        optimizer = keras.optimizers.SGD(schedule, momentum=config.momentum)
    elif config.optimizer == "adam":
        optimizer = keras.optimizers.Adam(schedule)
    else:
        optimizer = keras.optimizers.AdamW(schedule, weight_decay=config.weight_decay)
    optimizer._all_reduce_sum_gradients = lambda grads_and_vars: grads_and_vars
    return optimizer
