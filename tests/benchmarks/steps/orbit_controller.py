"""Orbit's Controller over its StandardTrainer with a tf.while_loop, Keras 2 as Orbit wants it.

A loop of Orbit's ends where a line of metrics is due, since it reads and writes them at its end.
"""

import tempfile
from typing import Any

import orbit
import tensorflow as tf
import tf_keras

from tests.benchmarks.steps.case import BATCH, DECAY_STEPS, LEARNING_RATE, LOG_EVERY, Case
from tests.benchmarks.steps.cluster import distributed, strategy
from tests.benchmarks.steps.turns import Turns


class _Trainer(orbit.StandardTrainer):
    def __init__(self, case: Case, where: tf.distribute.Strategy) -> None:
        self.where = where
        self.model = case.model(tf_keras)
        schedule = tf_keras.optimizers.schedules.CosineDecay(LEARNING_RATE, DECAY_STEPS)
        self.optimizer = tf_keras.optimizers.AdamW(schedule)
        self.optimizer.build(self.model.trainable_variables)
        self.figures = {"loss": tf_keras.metrics.Mean(), "gradient_norm": tf_keras.metrics.Mean()}
        super().__init__(distributed(where, case))

    def train_step(self, iterator: Any) -> None:
        self.where.run(self._replica_step, args=next(iterator))

    def _replica_step(self, features: tf.Tensor, labels: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            logits = self.model(features, training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = tf.reduce_sum(losses) / BATCH
        gradients = tape.gradient(loss, self.model.trainable_variables)
        if self.where.num_replicas_in_sync > 1:
            context = tf.distribute.get_replica_context()
            gradients = context.all_reduce(tf.distribute.ReduceOp.SUM, gradients)
        self.optimizer.apply_gradients(
            zip(gradients, self.model.trainable_variables, strict=True),
            skip_gradients_aggregation=True,
        )
        self.figures["loss"].update_state(losses)
        self.figures["gradient_norm"].update_state(tf.linalg.global_norm(gradients))

    def train_loop_end(self) -> dict[str, tf.Tensor]:
        values = {name: figure.result() for name, figure in self.figures.items()}
        for figure in self.figures.values():
            figure.reset_state()
        return values


def train(case: Case, place: str, turns: Turns) -> None:
    where = strategy(place)
    with where.scope():
        trainer = _Trainer(case, where)
    controller = orbit.Controller(
        trainer=trainer,
        global_step=trainer.optimizer.iterations,
        strategy=where,
        steps_per_loop=LOG_EVERY,
        summary_interval=LOG_EVERY,
        summary_dir=tempfile.mkdtemp(prefix="orbit-"),
    )
    done = 0
    while True:
        turns.boundary()
        done += case.turn
        controller.train(steps=done, checkpoint_at_completion=False)
