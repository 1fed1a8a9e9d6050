"""What feeds the steps of one process: super-batches for each replica that it drives."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from trainer.cluster.spec import ClusterSpec
from trainer.config import MOST_STEPS, TrainConfig
from trainer.data.dataset import Dataset
from trainer.data.input import Columns, training_batches
from trainer.loop.ahead import Ahead
from trainer.plan import plan_lanes
from trainer.task import Task, named_rows

# A few of them are in memory at once, on every replica.
_SUPER_BATCH_BYTES = 1 << 27
# Of a value whose size is not known before it is read.
_UNKNOWN_BYTES = 64
# Taking an input apart waits for the super-batch that it is filling, seconds that a worker which
# lost its peer does not have. Kept until the process ends, by `faults.leave`, nothing waits.
_inputs: list[Any] = []


def local_replicas(spec: ClusterSpec, replicas: int) -> range:
    """Returns which of the `replicas` of a run this process drives."""
    count = replicas // spec.world_size
    return range(spec.rank * count, (spec.rank + 1) * count)


def step_inputs(task: Task, columns: Columns, rows: int) -> dict[str, Any]:
    """Returns the type specs of the features of `rows` training rows, as `preprocess` gives them.

    Nothing is read: the function is traced.
    """
    signature = columns.signature(rows)
    if task.augments:
        signature["seeds"] = tf.TensorSpec([rows, 2], tf.int32)

    def features(arrays: dict[str, tf.Tensor]) -> Any:
        made = named_rows("preprocess", task.preprocess(columns.named(arrays)), rows)
        if task.augments:
            made = named_rows("augment", task.augment(made, arrays["seeds"]), rows)
        return made

    # Without AutoGraph, which wraps what is raised inside.
    outputs = (
        tf.function(features, autograph=False).get_concrete_function(signature).structured_outputs
    )
    return {name: _of_rows(tf.type_spec_from_value(value), rows) for name, value in outputs.items()}


def _of_rows(spec: Any, rows: int) -> Any:
    """The input fixes the number of rows where `preprocess` has lost it."""
    if not isinstance(spec, tf.TensorSpec) or not spec.shape.rank:
        return spec
    return tf.TensorSpec([rows, *spec.shape[1:]], spec.dtype)


def most_steps(task: Task, columns: Columns | None, rows: int) -> int:
    """Returns how many steps of `rows` rows a super-batch of one replica may hold."""
    if columns is None:
        return MOST_STEPS
    sizes = [_row_bytes(spec) for spec in step_inputs(task, columns, rows).values()]
    return max(1, _SUPER_BATCH_BYTES // (rows * max(1, sum(sizes))))


def _row_bytes(spec: Any) -> int:
    """Returns the memory of one row of a feature, about."""
    if not isinstance(spec, tf.TensorSpec) or spec.shape.rank is None:
        return _UNKNOWN_BYTES
    width = _UNKNOWN_BYTES if spec.dtype == tf.string else spec.dtype.size
    return math.prod((n or 1 for n in spec.shape.as_list()[1:]), start=width)


def start_feeds(
    config: TrainConfig,
    dataset: Dataset,
    task: Task,
    columns: Columns | None,
    *,
    replicas: int,
    local: range,
    start: int,
    last: int,
    steps: int,
) -> list[Iterator[Any]]:
    """Returns one iterator of super-batches (`training_batches`) for each replica in `local`.

    None at all if the task feeds itself (`columns` is None).
    """
    if columns is None:
        return []
    lanes = plan_lanes(config, dataset, replicas)
    feeds: list[Iterator[Any]] = [
        Ahead(
            training_batches(
                columns, "train", task.preprocess, lanes,
                replica=replica, replicas=replicas, step=start, last=last, steps=steps,
                augment=task.augment if task.augments else None, seed=config.seed,
            )
        )
        for replica in local
    ]  # fmt: skip
    _inputs.extend(feeds)
    return feeds
