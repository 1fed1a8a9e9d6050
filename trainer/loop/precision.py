"""float16: a loss scale that all replicas share (the layers' policy: `tasks/policy`).

Gradients in float16 vanish below 6e-8, so the loss is multiplied before the backward pass and the
sums are divided after the all-reduce. The scale halves when a step is not finite (which the reduced
gradients say, equally on all replicas) and doubles after a long run of finite ones (Micikevicius et
al. 2018). Keras' LossScaleOptimizer looks at local gradients instead, and replicas that disagree
hang.
"""

from __future__ import annotations

import tensorflow as tf

from trainer.config import TrainConfig

# Below one the scale would be a second learning rate.
_LEAST_SCALE = 1.0
# 2^40: larger than any useful one, far from float32's end.
_MOST_SCALE = 2.0**40


class LossScale:
    """What the loss is multiplied by; make it inside the strategy's scope.

    variables: what a checkpoint keeps of it.
    """

    def __init__(self, initial: float, growth_steps: int) -> None:
        self._growth_steps = growth_steps
        self._scale = tf.Variable(initial, trainable=False, dtype=tf.float32, name="loss_scale")
        self._finite_run = tf.Variable(0, trainable=False, dtype=tf.int32, name="finite_run")
        self.variables = {
            "precision/loss_scale": self._scale,
            "precision/finite_run": self._finite_run,
        }

    @property
    def value(self) -> tf.Tensor:
        """The scale, scalar float32."""
        return tf.convert_to_tensor(self._scale)

    def note(self, good: tf.Tensor) -> None:
        """Learns whether a step was finite; in cross-replica context."""
        run = tf.where(good, self._finite_run + 1, 0)
        grows = run >= self._growth_steps
        scale = tf.where(good, tf.where(grows, self._scale * 2.0, self._scale), self._scale / 2.0)
        self._scale.assign(tf.clip_by_value(scale, _LEAST_SCALE, _MOST_SCALE))
        self._finite_run.assign(tf.where(grows, 0, run))


def make_loss_scale(config: TrainConfig) -> LossScale | None:
    """Returns float16's scale, None for precisions with float32's range."""
    if config.precision != "float16":
        return None
    return LossScale(config.initial_loss_scale, config.loss_scale_growth_steps)
