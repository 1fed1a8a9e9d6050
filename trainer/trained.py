"""A finished (or running) training, loaded back: what evaluation and export start from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import keras

from trainer import files
from trainer.config import TrainConfig, stored
from trainer.data.dataset import Dataset
from trainer.data.source import place_of
from trainer.loop.variables import task_variables
from trainer.run import belonging, checkpoint
from trainer.run.choice import Which, choose
from trainer.run.commits import Commit
from trainer.run.directory import RunDirectory
from trainer.task import Task
from trainer.tasks import build_task


@dataclass(frozen=True)
class Trained:
    """A Task built as in training and holding the weights of one checkpoint.

    dataset: columns and statistics that it was built from; its path is where the rows are now.
    fingerprint: of the checkpoint's files. why: which checkpoint it is, as "step 900, best auc
    0.93" or "step 1000, the newest".
    """

    task: Task
    config: TrainConfig
    dataset: Dataset
    step: int
    fingerprint: str
    why: str


@dataclass(frozen=True)
class Built:
    """A run's Task with the weights it began with; `restore` brings those of a checkpoint.

    identity: what its checkpoints must be of (`belonging`).
    """

    task: Task
    config: TrainConfig
    dataset: Dataset
    identity: Mapping[str, Any]

    def restore(self, commit: Commit, *, averaged: bool = True) -> None:
        """Loads a checkpoint; where it holds averages of weights (`ema_decay`), those.

        averaged: False takes the weights themselves.

        Raises:
          UsageError: it is of another run, does not fit the Task, or was damaged since.
        """
        checkpoint.restore(commit, task_variables(self.task), self.identity, averaged=averaged)


def build(run: str, *, data: str | None = None) -> Built:
    """Builds the Task of a run directory as training did, inside the caller's scope.

    data: where the data set is, if it is not where training found it.

    Raises:
      UsageError: there is no run, or it is damaged.
    """
    content = RunDirectory(run).read_config()
    config = stored(content, files.join(run, "config.json"))
    dataset = Dataset.open(files.join(run, "dataset"))
    dataset = replace(dataset, path=place_of(config, data))
    keras.utils.set_random_seed(config.seed)
    return Built(build_task(config, dataset), config, dataset, belonging.identity(content))


def load(
    run: str, *, step: Which = None, data: str | None = None, averaged: bool = True
) -> Trained:
    """Loads a whole checkpoint of a run directory.

    Call it inside the scope of the strategy that will use the model.

    Args:
      run: the directory.
      step: of the checkpoint, "best" or "newest"; None: the best if the run was evaluated during
        training and keeps one, else the newest.
      data: where the data set is, if it is not where training found it.
      averaged: take the averages of the weights where the run keeps them.

    Raises:
      UsageError: there is no run, no such whole checkpoint, or it does not fit the Task.
    """
    built = build(run, data=data)
    choice = choose(RunDirectory(run).checkpoints, step)
    built.restore(choice.commit, averaged=averaged)
    averages = ", averaged weights" if averaged and built.config.ema_decay else ""
    return Trained(
        built.task, built.config, built.dataset,
        choice.commit.step, choice.commit.fingerprint, f"{choice.why}{averages}",
    )  # fmt: skip
