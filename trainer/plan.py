"""A run that can start: configuration, data set, cluster and run directory fit each other.

Whatever can be refused is refused here, before TensorFlow is imported and before workers meet.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from trainer.actions import check_names
from trainer.cluster import strategy as strategies
from trainer.cluster.devices import glimpse_devices
from trainer.cluster.spec import ClusterSpec
from trainer.config import MOST_STEPS, RESUMABLE_KEYS, TrainConfig, parse_options
from trainer.data import lanes as lane_plan
from trainer.data.dataset import Dataset
from trainer.data.lanes import Lanes
from trainer.data.source import open_data
from trainer.data.weighting import check_weights
from trainer.errors import UsageError
from trainer.run.directory import RunDirectory
from trainer.tasks import options_class


@dataclass(frozen=True)
class Plan:
    """Everything about a run that needs neither TensorFlow nor another worker.

    lanes: the order of the rows; None if no data is read.
    """

    config: TrainConfig
    dataset: Dataset
    lanes: Lanes | None
    choice: strategies.Choice
    spec: ClusterSpec

    @property
    def stored(self) -> dict[str, Any]:
        """What stands in config.json."""
        return {
            **self.config.model_dump(mode="json"),
            "dataset_fingerprint": self.dataset.manifest.fingerprint,
        }

    @property
    def fingerprint(self) -> str:
        """Equal on all workers of a run (paths may differ from one to another)."""
        shared = {k: v for k, v in self.stored.items() if k not in ("data", "output", "cache")}
        return hashlib.sha256(json.dumps(shared, sort_keys=True).encode()).hexdigest()


def make_plan(config: TrainConfig, spec: ClusterSpec) -> Plan:
    """Checks configuration, data set, cluster and run directory against each other.

    Raises:
      UsageError: anything that a user has to mend.
    """
    check_names(config.actions)
    if options := options_class(config.task):
        parse_options(options, config.options)
    choice = strategies.choose(spec, config.strategy, glimpse_devices(), config.cpu_replicas)
    dataset = _data(config)
    # The cores of a TPU are counted once it runs; then the lanes are planned again.
    lanes = None if dataset.is_nothing else plan_lanes(config, dataset, choice.replicas or 1)
    if lanes is None:
        replica_rows(config, choice.replicas or 1)
    config = config.model_copy(
        update={"steps": _steps(config, dataset), "lanes": lanes.count if lanes else None}
    )
    if config.profile and config.profiled_steps[0] >= (config.steps or 0):
        raise UsageError(
            f"profile ({config.profile}) begins after the last step ({config.steps}): trace others"
        )
    plan = Plan(config, dataset, lanes, choice, spec)
    RunDirectory(config.output).check(plan.stored, RESUMABLE_KEYS)
    return plan


def _data(config: TrainConfig) -> Dataset:
    """Returns the data set, looked at as far as its description goes."""
    if not config.data:
        if options_class(config.task):
            raise UsageError(f"data is required: the {config.task} task reads it, pass --data DIR")
        return Dataset.nothing()
    dataset = open_data(config)
    for split in ("train", *([config.eval_split] if config.eval_every else [])):
        dataset.check_sizes(split)
        dataset.check_statistics(split)
        check_weights(dataset, split)
    return dataset


def _steps(config: TrainConfig, dataset: Dataset) -> int:
    if config.steps is not None:
        return config.steps
    if dataset.is_nothing:
        raise UsageError("steps is required: without --data there are no epochs, pass --steps N")
    rows = dataset.split("train").rows
    steps = max(1, round(config.epochs * rows / config.global_batch))
    if steps > MOST_STEPS:
        raise UsageError(f"epochs ({config.epochs:g}) are more than {MOST_STEPS} steps: take fewer")
    return steps


def plan_lanes(config: TrainConfig, dataset: Dataset, replicas: int) -> Lanes:
    """Returns the order of the training rows.

    Raises:
      UsageError: shards, batch, microbatches and replicas do not fit each other.
    """
    lanes = lane_plan.plan(
        [shard.rows for shard in dataset.split("train").shards],
        global_batch=config.global_batch,
        replicas=replicas,
        seed=config.seed,
        window_rows=config.window_rows,
        lanes=config.lanes,
    )
    replica_rows(config, replicas)
    return lanes


def replica_rows(config: TrainConfig, replicas: int) -> int:
    """Returns the rows of one replica in a step.

    Raises:
      UsageError: replicas do not divide the batch, or micro-batches do not divide those rows.
    """
    if config.global_batch % replicas:
        raise UsageError(
            f"global_batch ({config.global_batch}) is not a multiple of replicas ({replicas})"
        )
    rows = config.global_batch // replicas
    if rows % config.microbatches:
        raise UsageError(
            f"microbatches ({config.microbatches}) do not divide the {rows} rows of a replica "
            f"(global_batch {config.global_batch} / replicas {replicas})"
        )
    return rows
