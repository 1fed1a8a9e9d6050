"""A finished (or running) training, loaded back: what evaluation and export start from."""

from __future__ import annotations

from dataclasses import dataclass, replace

import keras

from trainer import files
from trainer.config import TrainConfig
from trainer.data.dataset import Dataset
from trainer.errors import UsageError
from trainer.loop.variables import task_variables
from trainer.run import checkpoint
from trainer.run.directory import RunDirectory
from trainer.task import Task
from trainer.tasks import build_task


@dataclass(frozen=True)
class Trained:
    """A Task built as in training and holding the weights of one checkpoint.

    dataset: columns and statistics that it was built from; its path is where the rows are now.
    fingerprint: of the checkpoint's files.
    """

    task: Task
    config: TrainConfig
    dataset: Dataset
    step: int
    fingerprint: str


def load(run: str, *, step: int | None = None, data: str | None = None) -> Trained:
    """Loads the newest whole checkpoint of a run directory, or the one of `step`.

    Call it inside the scope of the strategy that will use the model. `data` says where the data
    set is, if it is not where training found it.

    Raises:
      UsageError: there is no run, no whole checkpoint, or it does not fit the Task.
    """
    directory = RunDirectory(run)
    stored = directory.read_config()
    config = TrainConfig.model_validate(
        {k: v for k, v in stored.items() if k in TrainConfig.model_fields}
    )
    dataset = Dataset.open(files.join(run, "dataset"))
    dataset = replace(dataset, path=data or config.data)
    keras.utils.set_random_seed(config.seed)
    task = build_task(config, dataset)
    commit = (
        checkpoint.latest(directory.checkpoints, lambda line: None)
        if step is None
        else checkpoint.commit_at(directory.checkpoints, step)
    )
    if commit is None:
        raise UsageError(f"{run} has no whole checkpoint yet: train first, or wait for one")
    checkpoint.restore(commit, task_variables(task))
    return Trained(task, config, dataset, commit.step, commit.fingerprint)
