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
    """rate(step): linear from 0 over the warm-up; then constant, a cosine to 0, or stairs.

    `step` counts applied updates: a skipped (non-finite) step does not move it.
    """

    def __init__(self, config: TrainConfig, steps: int) -> None:
        self.peak = peak_learning_rate(config)
        self.warmup_steps = config.warmup_steps
        self.decay_steps = max(steps - config.warmup_steps, 1)
        self.cosine = config.schedule == "cosine"
        self.decay_at = config.decay_at
        self.decay_factor = config.decay_factor

    def __call__(self, step: Any) -> tf.Tensor:
        """Returns the float32 rate of update number `step`, from 0."""
        now = tf.cast(step, tf.float32)
        rate = tf.constant(self.peak, tf.float32)
        if self.cosine:
            progress = tf.clip_by_value((now - self.warmup_steps) / self.decay_steps, 0.0, 1.0)
            rate = rate * 0.5 * (1.0 + tf.cos(math.pi * progress))
        for stair in self.decay_at:
            rate = rate * tf.where(now >= stair, self.decay_factor, 1.0)
        if self.warmup_steps:
            rate = rate * tf.minimum((now + 1.0) / self.warmup_steps, 1.0)
        return rate

    def get_config(self) -> dict[str, Any]:
        """Never used: a run is described by its config.json."""
        return dict(vars(self))
