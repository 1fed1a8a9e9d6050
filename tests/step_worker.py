"""The body of a forked worker: twenty steps without a run directory, the outcome in a file."""

from __future__ import annotations

import os
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from trainer.build import build
from trainer.cluster import strategy as strategies
from trainer.cluster.devices import Devices
from trainer.cluster.resolve import resolve
from trainer.config import TrainConfig
from trainer.data.dataset import Dataset
from trainer.data.input import training_batches
from trainer.loop import seeds
from trainer.loop.agree import make_agree
from trainer.loop.evaluate import Evaluation
from trainer.loop.loop import Hooks, Loop
from trainer.loop.predict import predict
from trainer.plan import plan_lanes

STEPS = 20
TASK = "tests.odd_tasks:Probe"


def run(data: str, output: str, cpus: int, options: dict[str, Any]) -> None:
    options = {"task": TASK, "steps_per_call": 10, **options}
    infinity_at, rows = options.pop("infinity_at", None), options.pop("rows", None)
    data = options.pop("data", data)
    own = {key: options.pop(key) for key in ("dropout", "l2") if key in options}
    config = TrainConfig(
        data=data, output=output, global_batch=64, steps=STEPS, log_every=10, learning_rate=1e-2,
        options={**({"hidden": (32, 16)} if data else {}), **own}, **options,
    )  # fmt: skip
    spec = resolve(os.environ)
    choice = strategies.choose(spec, "auto", Devices(), cpus)
    strategy = strategies.build(
        choice, spec, heartbeat_timeout_seconds=10, collective_timeout_seconds=60
    )
    dataset = Dataset.open(data) if data else Dataset.nothing()
    trained = build(config, dataset, strategy)
    task = trained.task
    replicas = strategy.num_replicas_in_sync
    local = replicas // spec.world_size
    mine = range(spec.rank * local, (spec.rank + 1) * local)
    feeds = []
    for replica in mine if data else ():
        lanes = plan_lanes(config, dataset, replicas)
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
    Loop(trained.step(config), strategy, feeds, config, hooks).run(0)
    trained.settle()
    weights = flat(task.model.get_weights())
    losses = [values["loss"] for values in written]
    if not data:
        np.savez(output, weights=weights, losses=losses)
        return
    evaluation = Evaluation(task, strategy, dataset, "test", batch=rows or 70, replicas=mine)
    figures = evaluation() or {}
    if trained.ema is not None:
        with trained.ema.in_place():
            figures |= {f"ema/{k}": v for k, v in (evaluation() or {}).items()}
    predictions = predict(task, strategy, dataset, "test", batch=70)
    (outputs,) = predictions.outputs.values()
    np.savez(
        output,
        weights=weights,
        averages=flat(trained.ema.variables.values() if trained.ema else ()),
        losses=losses,
        skipped=sum(values["skipped_steps"] for values in written),
        loss_scale=float(trained.scale.value) if trained.scale else 1.0,
        logged=sorted({key for values in written for key in values}),
        figures=list(figures.values()),
        masks=masks(strategy),
        row_id=predictions.row_id,
        labels=predictions.label,
        outputs=outputs,
    )


def flat(arrays: Any) -> Any:
    return np.concatenate([np.zeros(0), *(np.asarray(a).ravel() for a in arrays)])


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
