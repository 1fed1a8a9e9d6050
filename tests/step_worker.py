"""The body of a forked worker: twenty steps without a run directory, the outcome in a file."""

from __future__ import annotations

import os
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from trainer.cluster import strategy as strategies
from trainer.cluster.devices import Devices
from trainer.cluster.resolve import resolve
from trainer.config import TrainConfig
from trainer.data.dataset import Dataset
from trainer.data.input import training_batches
from trainer.loop import seeds
from trainer.loop.agree import make_agree
from trainer.loop.ema import Ema
from trainer.loop.loop import Hooks, Loop
from trainer.loop.optimizer import make_optimizers
from trainer.loop.precision import make_loss_scale
from trainer.loop.predict import predict
from trainer.loop.step import TrainStep
from trainer.loop.variables import trained_variables
from trainer.plan import plan_lanes
from trainer.tasks.policy import policy
from trainer.tasks.tabular.options import TabularOptions
from trainer.tasks.tabular.task import Tabular

STEPS = 20


class Probe(Tabular):
    """The tabular task with a penalty on its kernels."""

    l2 = 0.0

    def penalty(self) -> tf.Tensor:
        kernels = [v.value for v in self.trained_variables() if v.name == "kernel"]
        return self.l2 * tf.add_n([tf.nn.l2_loss(kernel) for kernel in kernels])


def run(data: str, output: str, cpus: int, options: dict[str, Any]) -> None:
    options = dict(options)
    l2, infinity_at = options.pop("l2", 0.0), options.pop("infinity_at", None)
    task_options = TabularOptions(hidden=(32, 16), dropout=options.pop("dropout", 0.0))
    config = TrainConfig(
        data=data, output=output, global_batch=64, steps=STEPS, log_every=10,
        learning_rate=1e-2, **{"steps_per_call": 10, **options},
    )  # fmt: skip
    spec = resolve(os.environ)
    choice = strategies.choose(spec, "auto", Devices(), cpus)
    strategy = strategies.build(
        choice, spec, heartbeat_timeout_seconds=10, collective_timeout_seconds=60
    )
    dataset = Dataset.open(data)
    with strategy.scope():
        keras.utils.set_random_seed(0)
        task = Probe(task_options)
        task.l2 = l2
        with policy(config.precision):
            task.build(dataset)
        seeds.reseed(task.models(), 0)
        optimizers = make_optimizers(task, config)
        scale = make_loss_scale(config)
        ema = Ema(trained_variables(task), config.ema_decay) if config.ema_decay else None
    replicas = strategy.num_replicas_in_sync
    lanes = plan_lanes(config, dataset, replicas)
    local = replicas // spec.world_size
    feeds = []
    for replica in range(spec.rank * local, (spec.rank + 1) * local):
        feed = training_batches(
            task.columns(dataset), "train", task.preprocess, lanes,
            replica=replica, replicas=replicas, step=0, last=STEPS, steps=config.steps_per_call,
        )  # fmt: skip
        at = infinity_at if replica == replicas - 1 else None
        feeds.append(poisoned(feed, at, config.steps_per_call))
    written: list[Any] = []
    hooks = Hooks(
        save=lambda step: None,
        finish=lambda: None,
        write=lambda step, split, values: written.append(values),
        beat=lambda step: None,
        stop_requested=lambda: False,
        agree=make_agree(strategy, spec.world_size),
    )
    step = TrainStep(task, strategy, optimizers, config, scale=scale, ema=ema)
    Loop(step, strategy, feeds, config, hooks).run(0)
    predictions = predict(task, strategy, dataset, "test", batch=70)
    (outputs,) = predictions.outputs.values()
    np.savez(
        output,
        weights=np.concatenate([np.asarray(w).ravel() for w in task.model.get_weights()]),
        losses=[values["loss"] for values in written],
        skipped=sum(values["skipped_steps"] for values in written),
        masks=masks(strategy),
        row_id=predictions.row_id,
        labels=predictions.label,
        outputs=outputs,
    )


def poisoned(feed: Any, at: int | None, steps: int) -> Any:
    """Passes super-batches on; puts an infinity into the last row of batch number `at`."""
    for number, batch in enumerate(feed):
        if at is not None and number == at // steps:
            features, label, weight = batch
            numbers = features["numbers"].numpy()
            numbers[at % steps, -1, 0] = np.inf
            yield {**features, "numbers": tf.constant(numbers)}, label, weight
        else:
            yield batch


def masks(strategy: tf.distribute.Strategy) -> Any:
    """Returns what Dropout makes of ones in each local replica, [replicas, 64]."""
    with strategy.scope():
        model = keras.Sequential([keras.Input((64,)), keras.layers.Dropout(0.5)])
        seeds.reseed({"model": model}, 0)

    @tf.function
    def draw() -> Any:
        def one() -> tf.Tensor:
            replica = tf.distribute.get_replica_context().replica_id_in_sync_group
            with seeds.at(tf.constant(3), replica, tf.constant(0)):
                return model(tf.ones([1, 64]), training=True)[0]

        return strategy.run(one)

    return np.stack([np.asarray(t) for t in strategy.experimental_local_results(draw())])
