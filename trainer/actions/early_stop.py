"""Ends a run whose evaluations have stopped getting better."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from trainer.actions.metric import figure, mode_of
from trainer.actions.report import Report
from trainer.config import TrainConfig
from trainer.run import marks


class EarlyStop:
    """Stops after `early_stop_evals` evaluations in a row without a better `best_metric`.

    A run that resumes counts on from what it has logged; one that had stopped early stops again
    before it trains a step, unless it is given more patience.

    Args:
      config: eval_split, best_metric, best_mode, early_stop_evals, early_stop_delta.
      stop: takes the reason and ends the run.
      evaluated: (step, best_metric) of the evaluations until now.
    """

    def __init__(
        self,
        config: TrainConfig,
        stop: Callable[[str], None],
        evaluated: Sequence[tuple[int, float]],
    ) -> None:
        self._config = config
        self._mode = mode_of(config)
        self._best: tuple[int, float] | None = None
        self._without = 0
        for step, value in evaluated:
            self._count(step, value)
        if self._spent:
            stop(f"had {self._reason()}")

    def __call__(self, report: Report) -> None:
        """Takes an evaluation.

        Raises:
          UsageError: `best_metric` is not among the figures.
        """
        if report.split != self._config.eval_split:
            return
        self._count(report.step, figure(self._config, report.metrics))
        if self._spent:
            report.stop(self._reason())

    @property
    def _spent(self) -> bool:
        return self._without >= (self._config.early_stop_evals or 0)

    def _count(self, step: int, value: float) -> None:
        delta = self._config.early_stop_delta
        if self._best is None:
            better = not math.isnan(value)
        else:
            better = marks.better(value, self._best[1], self._mode, delta)
        if better:
            self._best, self._without = (step, value), 0
        else:
            self._without += 1

    def _reason(self) -> str:
        name, evals = self._config.best_metric, self._without
        if self._best is None:
            return f"stopped early: {name} was not finite in {evals} evaluations"
        step, value = self._best
        return (
            f"stopped early: no better {name} than {value:.4g} (step {step:,}) in "
            f"{evals} evaluations"
        )
