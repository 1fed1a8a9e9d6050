"""A data set as a finished run uses it: does it fit, and its columns as requests bring them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from trainer.data.dataset import Dataset
from trainer.data.manifest import Feature
from trainer.data.rows import DamagedShard, raw_features, read_rows
from trainer.errors import UsageError
from trainer.task import Task
from trainer.trained import Trained


def task_for(trained: Trained, dataset: Dataset) -> Task:
    """Returns the run's task, ready to read `dataset`, which need not be the one it was trained on.

    Raises:
      UsageError: an input column or the label is missing, new or different, naming all of them.
    """
    run, here = trained.dataset.manifest, dataset.manifest
    if run.label != here.label:
        raise UsageError(
            f"{dataset.path} has the label {_describe_label(dataset)}, the run was trained on "
            f"{_describe_label(trained.dataset)}: evaluate on data with the same label and classes"
        )
    there = {f.name: f for f in here.features}
    wanted = {f.name: f for f in trained.task.inputs(run)}
    differing = [f"{name} is missing" for name in wanted if name not in there]
    differing += [
        f"{name} is {_describe(there[name])}, was {_describe(feature)}"
        for name, feature in wanted.items()
        if name in there and _describe(there[name]) != _describe(feature)
    ]
    if not differing:
        added = {f.name for f in trained.task.inputs(here)} - set(wanted)
        differing = [f"{name} is new" for name in sorted(added)]
    if differing:
        raise UsageError(
            f"{dataset.path} has other columns than the run was trained on: {'; '.join(differing)}"
        )
    if any(there[name].dictionary != feature.dictionary for name, feature in wanted.items()):
        # The codes in these shards count another dictionary than the task's: hand it the words.
        trained.task.takes_codes = False  # type: ignore[misc]
    return trained.task


def _describe(feature: Feature) -> str:
    return feature.dtype + "".join(f"[{'?' if n is None else n}]" for n in feature.shape)


def _describe_label(dataset: Dataset) -> str:
    label = dataset.manifest.label
    classes = [str(c) for c in label.classes or ()]
    shown = f" of {', '.join(classes[:5])}{', …' if len(classes) > 5 else ''}" if classes else ""
    return f"{label.name!r} ({label.kind}{shown})"


def raw_columns(
    dataset: Dataset, split: str, names: Sequence[str]
) -> tuple[npt.NDArray[np.int64], dict[str, Any]]:
    """Returns row ids, ascending, and columns of a whole split; scalars and fixed-size lists.

    float32, int64 or object arrays of bytes, each [rows, …], null as a sentinel.

    Raises:
      UsageError: a shard is damaged.
    """
    ids: list[Any] = []
    parts: dict[str, list[Any]] = {name: [] for name in names}
    try:
        for block in read_rows(dataset, split):
            ids.append(block.row_id)
            for name, values in raw_features(dataset, block, names).items():
                parts[name].append(values)
    except DamagedShard as error:
        raise UsageError(str(error)) from None
    row_id = np.concatenate(ids)
    order = np.argsort(row_id, kind="stable")
    return row_id[order], {name: np.concatenate(p)[order] for name, p in parts.items()}
