"""The one all-reduce of a step: all objectives' sums, and how long it took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import tensorflow as tf

from trainer.task import Sums

# The sign, exponent and first seven fraction bits of a float32: what a bfloat16 holds.
_BFLOAT16_BITS = -(1 << 16)
# 24 significant bits, eight at a time.
_PARTS = 3


class Reduce:
    """Adds up what the replicas found; call it in replica context.

    dtype: of the gradients on their way. bfloat16 halves what the network carries; losses and
    weights, three digits of which are not enough, arrive as exact as in float32. timed: whether to
    look at the clock, which a TPU's program cannot.
    """

    def __init__(
        self, replicas: int, dtype: Literal["float32", "bfloat16"], *, timed: bool = True
    ) -> None:
        self._timed = timed
        self._replicas = replicas
        self._dtype = tf.as_dtype(dtype)

    def __call__(self, local: Mapping[str, Sums]) -> tuple[dict[str, Sums], tf.Tensor]:
        """Returns global sums by objective, and the seconds (float32) until they were there."""
        if self._replicas == 1:
            return dict(local), tf.constant(0.0)
        figures = tf.stack([x for part in local.values() for x in (part.loss, part.weight)])
        gradients = [g for part in local.values() for g in part.gradients]
        began = self._now_after([figures, *gradients])
        summed = self._sum([*(tf.cast(g, self._dtype) for g in gradients), self._packed(figures)])
        seconds = tf.cast(self._now_after(summed) - began, tf.float32)
        *found, packed = summed
        figures = self._unpacked(packed)
        gradients = [tf.cast(g, was.dtype) for g, was in zip(found, gradients, strict=True)]
        sums, at = {}, 0
        for number, (name, part) in enumerate(local.items()):
            end = at + len(part.gradients)
            sums[name] = Sums(gradients[at:end], figures[2 * number], figures[2 * number + 1])
            at = end
        return sums, seconds

    def _sum(self, tensors: Sequence[tf.Tensor]) -> list[Any]:
        """Sums tensors of one dtype: TensorFlow packs those into one buffer, and sends it once."""
        context = tf.distribute.get_replica_context()
        return list(context.all_reduce(tf.distribute.ReduceOp.SUM, list(tensors)))

    def _packed(self, figures: tf.Tensor) -> tf.Tensor:
        """Returns float32 figures as the gradients' dtype, without loss.

        A second all-reduce, however small, costs a round trip. So bfloat16 carries each figure in
        three parts, and each replica's in a row of its own, where only zeros are added to them.
        """
        if self._dtype == tf.float32:
            return figures
        parts, rest = [], figures
        for _ in range(_PARTS):
            # Not two casts: XLA leaves them out, and nothing would remain.
            bits = tf.bitwise.bitwise_and(tf.bitcast(rest, tf.int32), _BFLOAT16_BITS)
            parts.append(tf.bitcast(bits, tf.float32))
            rest -= parts[-1]
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        row = tf.one_hot(replica, self._replicas, dtype=self._dtype)
        return row[:, tf.newaxis, tf.newaxis] * tf.cast(tf.stack(parts), self._dtype)

    def _unpacked(self, packed: tf.Tensor) -> tf.Tensor:
        """Returns the sums of all replicas' figures, float32."""
        if self._dtype == tf.float32:
            return packed
        return tf.reduce_sum(tf.reduce_sum(tf.cast(packed, tf.float32), axis=1), axis=0)

    def _now_after(self, tensors: Sequence[tf.Tensor]) -> tf.Tensor:
        if not self._timed:
            return tf.constant(0.0)
        with tf.control_dependencies(list(tensors)), tf.device("CPU:0"):
            return tf.timestamp()
