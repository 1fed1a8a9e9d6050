"""Time of an all-reduce of 5 MB of gradients: `reduce_dtype: bfloat16` against float32.

Two processes on loopback, a core each, take turns between both; what is timed is the trainer's own
reduce, casts included. Beside it: how the examples a second of whole steps scale from one such
process to two (1: perfectly; two cores and a loopback stand in for two hosts and their network).
"""

import functools
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Literal

import keras
import tensorflow as tf

from tests.benchmarks.harness import Result, in_turns, result, wall_seconds
from tests.workers import processes, tf_configs
from trainer.cluster import strategy as strategies
from trainer.cluster.devices import Devices
from trainer.cluster.resolve import resolve
from trainer.config import TrainConfig
from trainer.loop.optimizer import make_optimizers
from trainer.loop.reduce import Reduce
from trainer.loop.step import TrainStep
from trainer.task import Batch, Sums, Task

Dtype = Literal["float32", "bfloat16"]
TARGET = 1.5
RUNS = 15
# 1.3 million weights, 5.2 MB.
WIDTH, INPUTS, CLASSES = 1100, 64, 10
SHAPES = ((INPUTS, WIDTH), (WIDTH,), (WIDTH, WIDTH), (WIDTH,), (WIDTH, CLASSES), (CLASSES,))
REDUCES = 10
ROWS, STEPS = 256, 5
PATIENCE_SECONDS = 600


def bench() -> Result:
    with tempfile.TemporaryDirectory() as name, processes() as start:
        directory, cores = Path(name), sorted(os.sched_getaffinity(0))[:2]

        def run(workers: int) -> Any:
            output = directory / f"{workers}.json"
            started = [
                start(_worker, str(output), cores[rank % len(cores)], env=env,
                      log=directory / f"{workers}-{rank}.log")
                for rank, env in enumerate(tf_configs(workers) if workers > 1 else [{}])
            ]  # fmt: skip
            for worker in started:
                worker.expect(0, PATIENCE_SECONDS)
            return json.loads(output.read_text())

        two, one = run(2), run(1)
    alone = median(one["step_seconds"]["float32"])
    return result(
        "allreduce_bfloat16",
        two["reduce_seconds"],
        against="reduce_dtype float32",
        target=TARGET,
        extra={
            "milliseconds": {
                dtype: round(1000 * median(seconds), 1)
                for dtype, seconds in zip(
                    ("bfloat16", "float32"), zip(*two["reduce_seconds"], strict=True), strict=True
                )
            },
            "scaling_efficiency": {
                dtype: round(alone / median(seconds), 3)
                for dtype, seconds in two["step_seconds"].items()
            },
        },
    )


def _worker(output: str, core: int) -> None:
    os.sched_setaffinity(0, {core})
    spec = resolve(os.environ)
    strategy = strategies.build(
        strategies.choose(spec, "auto", Devices()), spec,
        heartbeat_timeout_seconds=10, collective_timeout_seconds=PATIENCE_SECONDS,
    )  # fmt: skip
    found: dict[str, Any] = {"reduce_seconds": []}
    if spec.world_size > 1:
        ours, other = _reduces(strategy, "bfloat16"), _reduces(strategy, "float32")
        pairs = in_turns(ours, other, wall_seconds, RUNS)
        found["reduce_seconds"] = [[o / REDUCES, t / REDUCES] for o, t in pairs]
    dtypes: Sequence[Dtype] = ("float32", "bfloat16") if spec.world_size > 1 else ("float32",)
    calls = {dtype: _steps(strategy, dtype) for dtype in dtypes}
    found["step_seconds"] = {dtype: [] for dtype in dtypes}
    for _ in range(RUNS):
        for dtype, call in calls.items():
            found["step_seconds"][dtype].append(wall_seconds(call) / STEPS)
    if spec.is_chief:
        Path(output).write_text(json.dumps(found))
    # Who leaves first takes the others' connections along.
    time.sleep(0 if spec.is_chief else 1)


def _reduces(strategy: tf.distribute.Strategy, dtype: Dtype) -> Callable[[], object]:
    """Returns what reduces all gradients REDUCES times, traced already."""
    reduce = Reduce(strategy.num_replicas_in_sync, dtype)
    gradients = [tf.random.normal(shape) for shape in SHAPES]

    def once(so_far: tf.Tensor) -> tf.Tensor:
        # Each waits for the one before, as steps do.
        local = Sums([g + so_far for g in gradients], tf.constant(1.0), tf.constant(1.0))
        sums, _ = reduce({"loss": local})
        return tf.add_n([tf.reduce_max(g) for g in sums["loss"].gradients]) * 1e-9

    @tf.function
    def many() -> tf.Tensor:
        so_far = tf.constant(0.0)
        for _ in range(REDUCES):
            so_far = strategy.experimental_local_results(strategy.run(once, args=(so_far,)))[0]
        return so_far

    call = functools.partial(_wait, many)
    call()
    return call


def _wait(function: Callable[[], tf.Tensor]) -> float:
    return float(function())


class _Wide(Task):
    def __init__(self) -> None:
        super().__init__()
        layers = keras.layers
        self.model = keras.Sequential(
            [
                layers.Input((INPUTS,)),
                layers.Dense(WIDTH, activation="relu"),
                layers.Dense(WIDTH, activation="relu"),
                layers.Dense(CLASSES),
            ]
        )

    def loss(self, batch: Batch, training: bool) -> tf.Tensor:
        logits = self.model(batch.features["x"], training=training)
        return tf.nn.sparse_softmax_cross_entropy_with_logits(batch.label, logits)


def _steps(strategy: tf.distribute.Strategy, dtype: Dtype) -> Callable[[], object]:
    """Returns what trains STEPS steps of ROWS rows a worker, traced already."""
    config = TrainConfig(
        output="", global_batch=ROWS * strategy.num_replicas_in_sync, steps=10**6, jit="off",
        reduce_dtype=dtype,
    )  # fmt: skip
    with strategy.scope():
        task = _Wide()
        step = TrainStep(task, strategy, make_optimizers(task, config), config)
    rows = (
        {"x": tf.random.normal([STEPS, ROWS, INPUTS])},
        tf.random.uniform([STEPS, ROWS], maxval=CLASSES, dtype=tf.int32),
        tf.ones([STEPS, ROWS]),
    )
    feed: Iterator[Any] = iter([rows])
    batches = strategy.experimental_distribute_values_from_function(lambda context: next(feed))

    def call() -> tf.Tensor:
        nothing = tf.constant(0)
        return step(batches, first=0, count=STEPS, step=0, nonfinite_run=nothing).gradient_norm

    warmed = functools.partial(_wait, call)
    warmed()
    return warmed
