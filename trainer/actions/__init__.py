"""What happens on the outputs of an interval, and is not the step: each action is a file here.

An action is any callable that takes a `Report`; a user's own is named by `--actions
pkg.module:function`. Actions run on the chief alone, after the figures are written, and so must
never call a collective.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from trainer import files
from trainer.actions import own
from trainer.actions.best import Best, MarkBest
from trainer.actions.bottleneck import Bottleneck
from trainer.actions.early_stop import EarlyStop
from trainer.actions.hypertune import hypertune
from trainer.actions.metric import check_metric, history
from trainer.actions.own import check_names
from trainer.actions.report import Action, Report
from trainer.config import TrainConfig
from trainer.data.dataset import Dataset
from trainer.run.directory import RunDirectory

__all__ = ["Action", "Report", "check_metric", "check_names", "find_own", "make_actions"]


def find_own(config: TrainConfig) -> tuple[Action, ...]:
    """Returns the user's own actions; their code is imported.

    Raises:
      UsageError: one is not there.
    """
    return tuple(own.find(name) for name in config.actions)


def make_actions(
    config: TrainConfig,
    directory: RunDirectory,
    dataset: Dataset,
    *,
    replicas_here: int,
    start: int,
    mark: MarkBest,
    stop: Callable[[str], None],
    say: Callable[[str], None],
    mine: Sequence[Action] = (),
) -> tuple[Action, ...]:
    """Returns the actions of a run, in the order in which they are called; the chief's.

    An exception of one of them ends the run as any other does.

    Args:
      config: of the run.
      directory: its directory, which exists.
      dataset: that it reads.
      replicas_here: that this process feeds.
      start: the step that it goes on from.
      mark: `Saver.mark_best`.
      stop: ends the run, with the reason; called at once if the run had stopped early before.
      say: takes a line for people.
      mine: the user's own (`find_own`); they come last.
    """
    actions: list[Action] = []
    if config.lanes is not None:  # or the task feeds itself
        watch = Bottleneck(
            say=say,
            layout=dataset.manifest.layout,
            remote=files.is_remote(dataset.path) and dataset.cache is None,
            lanes=config.lanes,
            shards=len(dataset.split("train").shards),
            replicas_here=replicas_here,
        )
        actions.append(watch)
    if config.eval_every:
        evaluated = history(directory.metrics, config, start)
        if config.keep_best:
            actions.append(Best(config, directory.checkpoints, mark, start, evaluated))
        if config.early_stop_evals:
            actions.append(EarlyStop(config, stop, evaluated))
    elif "best_metric" in config.model_fields_set and start == 0:
        say(
            f"castell: warning: best_metric ({config.best_metric}) marks no checkpoint without "
            "evaluations on the way: set eval_every, unless an evaluator task follows this run"
        )
    if tuning := hypertune(config, os.environ, say):
        actions.append(tuning)
    return (*actions, *mine)
