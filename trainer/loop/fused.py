"""Keras' Adam and AdamW with one op a variable for the update.

Keras writes them as some twenty small ops a variable, which are a twentieth of a small CNN's step.
TensorFlow has it as a kernel; formulas and slots are Keras', so that a checkpoint fits both.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import keras
import tensorflow as tf


class Adam(keras.optimizers.Adam):
    """Adam (Kingma & Ba 2014); with a weight decay, AdamW (Loshchilov & Hutter 2017)."""

    # (rate, beta_1 ** step, beta_2 ** step) of the step that is being traced.
    _ahead: tuple[tf.Tensor, ...] | None = None

    @contextmanager
    def prepared(self) -> Iterator[None]:
        """Inside, `apply` uses what is computed here: early, where nothing waits for it."""
        self._ahead = self._shared()
        try:
            yield
        finally:
            self._ahead = None

    def _shared(self) -> tuple[tf.Tensor, ...]:
        """Returns what all variables share."""
        step = tf.cast(self.iterations.value + 1, tf.float32)
        rate = tf.cast(tf.convert_to_tensor(self.learning_rate), tf.float32)
        return rate, tf.pow(self.beta_1, step), tf.pow(self.beta_2, step)

    def _get_current_learning_rate(self) -> Any:
        return self._ahead[0] if self._ahead else super()._get_current_learning_rate()

    def _backend_update_step(
        self, grads: Any, trainable_variables: Any, learning_rate: Any
    ) -> None:
        # They travel with the rate.
        shared = self._ahead or self._shared()
        super()._backend_update_step(grads, trainable_variables, shared)

    def _apply_weight_decay(self, variables: Any) -> None:
        """`update_step` does it, where the rate is known."""

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Moves one variable and its slots; learning_rate: what `_shared` returns."""
        rate, *powers = (tf.cast(value, variable.dtype) for value in learning_rate)
        place = self._get_variable_index(variable)
        if self.weight_decay and self._use_weight_decay(variable):
            variable.assign_sub(variable * (rate * self.weight_decay))
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[place].value.handle,
            v=self._velocities[place].value.handle,
            beta1_power=powers[0],
            beta2_power=powers[1],
            lr=rate,
            beta1=tf.cast(self.beta_1, variable.dtype),
            beta2=tf.cast(self.beta_2, variable.dtype),
            epsilon=tf.cast(self.epsilon, variable.dtype),
            grad=tf.cast(gradient, variable.dtype),
        )
