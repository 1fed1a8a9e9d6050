"""Keeps a checkpoint of the evaluated steps that were the best so far."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence

from trainer.actions.metric import figure, mode_of
from trainer.actions.report import Report
from trainer.config import TrainConfig
from trainer.run import commits, marks
from trainer.run.marks import Mark, Mode

MarkBest = Callable[[int, str, float, Mode], None]


class Best:
    """After an evaluation among the best `keep_best`: saves the step, and marks it.

    Args:
      config: eval_split, best_metric, best_mode, keep_best.
      directory: the run's checkpoints.
      mark: `Saver.mark_best`.
      start: the step that the run goes on from; what was marked later will come again.
      evaluated: (step, best_metric) of the evaluations until then.
    """

    def __init__(
        self,
        config: TrainConfig,
        directory: str,
        mark: MarkBest,
        start: int,
        evaluated: Sequence[tuple[int, float]],
    ) -> None:
        self._config = config
        self._mode = mode_of(config)
        self._mark = mark
        there = marks.read(directory)
        self._best = [
            known
            for known in there
            if known.step <= start
            and known.metric == config.best_metric
            and os.path.exists(os.path.join(directory, commits.step_name(known.step)))
        ]
        if self._best != there:
            marks.write(directory, self._best)
        # A crash may have come between the commit of the last step and its mark.
        marked = {known.step for known in self._best}
        for step, value in evaluated:
            if step == start and step not in marked and self._ranks(step, value):
                mark(step, config.best_metric, value, self._mode)

    def __call__(self, report: Report) -> None:
        """Takes an evaluation.

        Raises:
          UsageError: `best_metric` is not among the figures.
        """
        if report.split != self._config.eval_split:
            return
        value = figure(self._config, report.metrics)
        if self._ranks(report.step, value):
            report.save()
            self._mark(report.step, self._config.best_metric, value, self._mode)

    def _ranks(self, step: int, value: float) -> bool:
        """Whether it is among the best; it is remembered if so."""
        if math.isnan(value):
            return False
        new = Mark(step, self._config.best_metric, value)
        self._best = marks.ranked(self._best, new, self._mode, self._config.keep_best)
        return new in self._best
