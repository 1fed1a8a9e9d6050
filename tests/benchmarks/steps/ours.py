"""Ours as a run has it: TrainStep and Loop over super-batches, with the writers of a run.

The rows come from the same tf.data source as the others', batched once more into super-batches:
what is raced is the loop, not the input (see the `input_*` benches for that).
"""

import os
import tempfile
from collections.abc import Iterator
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
from tests.benchmarks.steps.turns import Turns
from trainer.build import Trainable
from trainer.cluster import strategy as strategies
from trainer.cluster.devices import Devices
from trainer.cluster.resolve import resolve
from trainer.config import TrainConfig
from trainer.data.input import PREFETCH
from trainer.loop import jit, seeds
from trainer.loop.agree import make_agree
from trainer.loop.ahead import Ahead
from trainer.loop.loop import Hooks, Loop, Metrics
from trainer.loop.optimizer import make_optimizers
from trainer.run.writers import make_writers
from trainer.task import Batch, Task, Tensors


class Racer(Task):
    """The case's model under a Task."""

    def __init__(self, case: Case) -> None:
        super().__init__()
        self.model = case.model(keras)

    def loss(self, batch: Batch, training: bool) -> tf.Tensor:
        logits = self.model(batch.features["x"], training=training)
        return tf.nn.sparse_softmax_cross_entropy_with_logits(batch.label, logits)

    def serve(self, features: Tensors) -> Tensors:
        return {"probabilities": tf.nn.softmax(self.model(features["x"]))}


def train(case: Case, place: str, turns: Turns) -> None:
    output = tempfile.mkdtemp(prefix="ours-")
    config = TrainConfig(
        output=output, global_batch=BATCH, steps=DECAY_STEPS, learning_rate=LEARNING_RATE,
        schedule="cosine", steps_per_call=STEPS_PER_CALL, log_every=LOG_EVERY,
        checkpoint_every=DECAY_STEPS,
    )  # fmt: skip
    spec = resolve(os.environ)
    choice = strategies.choose(spec, "auto", Devices(), 2 if place == "mirrored" else 1)
    strategy = strategies.build(
        choice, spec, heartbeat_timeout_seconds=10, collective_timeout_seconds=600
    )
    with strategy.scope():
        task = Racer(case)
        seeds.reseed(task.models(), config.seed)
        optimizers = make_optimizers(task, config)
    trained = Trainable(task, strategy, optimizers, None, None, settle=lambda: None)
    step = trained.step(config)
    writer = make_writers(output, start=0, total=DECAY_STEPS)

    def write(done: int, split: str, values: Metrics) -> None:
        if spec.is_chief:
            writer.write(done, split, values)
        if done % case.turn == 0:
            turns.boundary()

    def settle_jit(batches: Any) -> None:
        if strategy.num_replicas_in_sync == 1:
            print(jit.choose(step, batches, STEPS_PER_CALL, trained.variables))

    hooks = Hooks(
        save=lambda done: None,
        finish=lambda: None,
        write=write,
        beat=lambda done: None,
        stop_requested=lambda: False,
        agree=make_agree(strategy, spec.world_size),
        first=settle_jit,
    )
    replicas = strategy.num_replicas_in_sync
    here = replicas // spec.world_size
    local = range(spec.rank * here, (spec.rank + 1) * here)
    feeds = [Ahead(_super_batches(case, replica, replicas)) for replica in local]
    Loop(step, strategy, feeds, config, hooks).run(0)


def _super_batches(case: Case, replica: int, replicas: int) -> Iterator[Any]:
    def named(features: tf.Tensor, labels: tf.Tensor) -> Any:
        return {"x": features}, labels, tf.ones(labels.shape)

    batches = case.batches(replica, replicas, replicas).batch(STEPS_PER_CALL, drop_remainder=True)
    return iter(batches.map(named).prefetch(PREFETCH))
