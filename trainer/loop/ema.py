"""Averages of the weights over the last steps, which often generalise better than the last ones.

average += (1 - d) * (weight - average) after each update, with d = min(decay, (1 + n) / (10 + n))
for update n, so that the first averages are not those of the initial weights (Polyak & Juditsky
1992; the warm-up is that of tf.train.ExponentialMovingAverage).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import tensorflow as tf


class Ema:
    """Averages of `weights` (name -> trainable tf.Variable); make it inside the strategy's scope.

    variables: what a checkpoint keeps, `ema/` before each name.
    """

    def __init__(self, weights: Mapping[str, Any], decay: float) -> None:
        self._decay = decay
        self._pairs = [
            (v, tf.Variable(tf.convert_to_tensor(v), trainable=False, name="average"))
            for v in weights.values()
        ]
        self.variables = {
            f"ema/{name}": average for name, (_, average) in zip(weights, self._pairs, strict=True)
        }

    def start(self) -> None:
        """Begins from the weights as they are (warm start)."""
        for weight, average in self._pairs:
            average.assign(tf.convert_to_tensor(weight))

    def follow(self, updates: Any) -> None:
        """Moves the averages towards the weights; in replica context, after update `updates`."""
        n = tf.cast(tf.convert_to_tensor(updates), tf.float32)
        share = 1.0 - tf.minimum(self._decay, (1.0 + n) / (10.0 + n))
        for weight, average in self._pairs:
            old = tf.convert_to_tensor(average)
            average.assign(old + tf.cast(share, old.dtype) * (tf.convert_to_tensor(weight) - old))

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Puts the averages where the weights are, for an evaluation."""
        kept = [tf.identity(tf.convert_to_tensor(weight)) for weight, _ in self._pairs]
        for weight, average in self._pairs:
            weight.assign(tf.convert_to_tensor(average))
        try:
            yield
        finally:
            for (weight, _), value in zip(self._pairs, kept, strict=True):
                weight.assign(value)
