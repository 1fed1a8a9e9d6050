"""The one all-reduce of a step: all objectives' sums, and how long it took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import tensorflow as tf

from trainer.task import Sums


class Reduce:
    """Adds up what the replicas found; call it in replica context.

    dtype: of the gradients on their way. bfloat16 halves what the network carries; losses and
    weights, three digits of which are not enough, stay float32.
    """

    def __init__(self, replicas: int, dtype: Literal["float32", "bfloat16"]) -> None:
        self._replicas = replicas
        self._dtype = tf.as_dtype(dtype)

    def __call__(self, local: Mapping[str, Sums]) -> tuple[dict[str, Sums], tf.Tensor]:
        """Returns global sums by objective, and the seconds (float64) until they were there."""
        if self._replicas == 1:
            return dict(local), tf.constant(0.0, tf.float64)
        figures = tf.stack([x for part in local.values() for x in (part.loss, part.weight)])
        gradients = [g for part in local.values() for g in part.gradients]
        began = _now_after([figures, *gradients])
        summed = self._sum([tf.cast(g, self._dtype) for g in gradients] + [figures])
        seconds = _now_after(summed) - began
        *found, figures = summed
        gradients = [tf.cast(g, was.dtype) for g, was in zip(found, gradients, strict=True)]
        sums, at = {}, 0
        for number, (name, part) in enumerate(local.items()):
            end = at + len(part.gradients)
            sums[name] = Sums(gradients[at:end], figures[2 * number], figures[2 * number + 1])
            at = end
        return sums, seconds

    def _sum(self, tensors: Sequence[tf.Tensor]) -> list[Any]:
        """One all-reduce for each dtype there is: TensorFlow packs a list into one buffer."""
        context = tf.distribute.get_replica_context()
        summed: dict[int, Any] = {}
        for dtype in dict.fromkeys(t.dtype for t in tensors):
            places = [place for place, t in enumerate(tensors) if t.dtype == dtype]
            values = context.all_reduce(tf.distribute.ReduceOp.SUM, [tensors[p] for p in places])
            summed.update(zip(places, values, strict=True))
        return [summed[place] for place in range(len(tensors))]


def _now_after(tensors: Sequence[tf.Tensor]) -> tf.Tensor:
    with tf.control_dependencies(list(tensors)), tf.device("CPU:0"):
        return tf.timestamp()
