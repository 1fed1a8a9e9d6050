"""The loop that TensorFlow's guides teach, written with care: 50 steps a tf.function call.

The gradients are reduced before the optimizer sees them, so that the norm it reports is the global
one, as ours is; it neither tests them for finiteness nor weighs rows.
"""

from typing import Any

import keras
import tensorflow as tf

from tests.benchmarks.steps.case import (
    BATCH,
    DECAY_STEPS,
    LEARNING_RATE,
    LOG_EVERY,
    STEPS_PER_CALL,
    Case,
)
from tests.benchmarks.steps.cluster import distributed, strategy
from tests.benchmarks.steps.turns import Turns


def train(case: Case, place: str, turns: Turns) -> None:
    where = strategy(place)
    with where.scope():
        model = case.model(keras)
        schedule = keras.optimizers.schedules.CosineDecay(LEARNING_RATE, DECAY_STEPS)
        optimizer = keras.optimizers.AdamW(schedule)
        optimizer.build(model.trainable_variables)
        figures = {"loss": keras.metrics.Mean(), "gradient_norm": keras.metrics.Mean()}
    optimizer._all_reduce_sum_gradients = lambda pairs: pairs
    variables = [variable.value for variable in model.trainable_variables]

    def step(features: tf.Tensor, labels: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            logits = model(features, training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = tf.reduce_sum(losses) / BATCH
        gradients = tape.gradient(loss, variables)
        if where.num_replicas_in_sync > 1:
            context = tf.distribute.get_replica_context()
            gradients = context.all_reduce(tf.distribute.ReduceOp.SUM, gradients)
        optimizer.apply(gradients, model.trainable_variables)
        figures["loss"].update_state(losses)
        figures["gradient_norm"].update_state(tf.linalg.global_norm(gradients))

    @tf.function
    def many(iterator: Any, count: tf.Tensor) -> None:
        for _ in tf.range(count):
            where.run(step, args=next(iterator))

    iterator = iter(distributed(where, case))
    count, done = tf.constant(STEPS_PER_CALL), 0
    while True:
        if done % case.turn == 0:
            turns.boundary()
        many(iterator, count)
        done += STEPS_PER_CALL
        if done % LOG_EVERY == 0:
            print(done, {name: float(figure.result()) for name, figure in figures.items()})
            for figure in figures.values():
                figure.reset_state()
