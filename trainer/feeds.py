"""What feeds the steps of one process: super-batches for each replica that it drives."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from trainer.cluster.spec import ClusterSpec
from trainer.config import MOST_STEPS, TrainConfig
from trainer.data.dataset import Dataset
from trainer.data.input import Columns, training_batches
from trainer.plan import plan_lanes
from trainer.task import Task

# A few of them are in memory at once, on every replica.
_SUPER_BATCH_BYTES = 1 << 27
# Taking an input apart waits for the super-batch that it is filling, seconds that a worker which
# lost its peer does not have. Kept until the process ends, by `faults.leave`, nothing waits.
_inputs: list[Any] = []


def local_replicas(spec: ClusterSpec, replicas: int) -> range:
    """Returns which of the `replicas` of a run this process drives."""
    count = replicas // spec.world_size
    return range(spec.rank * count, (spec.rank + 1) * count)


def most_steps(columns: Columns | None, rows: int) -> int:
    """Returns how many steps of `rows` rows a super-batch may hold."""
    if columns is None:
        return MOST_STEPS
    values = sum(math.prod(n or 1 for n in feature.shape) for feature in columns.features)
    return max(1, _SUPER_BATCH_BYTES // (8 * rows * max(values, 1)))


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
    feeds = [
        training_batches(
            columns, "train", task.preprocess, lanes,
            replica=replica, replicas=replicas, step=start, last=last, steps=steps,
            augment=task.augment if task.augments else None, seed=config.seed,
        )
        for replica in local
    ]  # fmt: skip
    _inputs.extend(feeds)
    return feeds
