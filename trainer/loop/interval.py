"""The figures of the steps between two log lines."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from trainer.loop.step import Outcome


class Interval:
    """Collects outcomes; `metrics` reads them, which waits for the device.

    objectives: names of the losses, in the order of `Outcome.losses`. wait: seconds spent waiting
    for the input. aside: seconds of evaluations and the like, which are no training.
    """

    def __init__(self, objectives: Sequence[str], replicas: int) -> None:
        self.wait = 0.0
        self.aside = 0.0
        self._objectives = objectives
        self._replicas = replicas
        self._began = time.perf_counter()
        self._steps = 0
        self._calls: list[Outcome] = []

    def add(self, outcome: Outcome, count: int) -> None:
        """Counts a call's steps; nothing is read off the device yet."""
        self._calls.append(outcome)
        self._steps += count

    def metrics(self, global_batch: int) -> dict[str, float]:
        """Returns the interval's losses, norm, rate, speed."""
        finite = np.array([int(outcome.finite) for outcome in self._calls])
        losses = np.array([np.asarray(outcome.losses) for outcome in self._calls])
        counted = finite > 0
        total = (losses[counted] * finite[counted, np.newaxis]).sum(axis=0)
        means = total / finite.sum() if finite.any() else np.full(len(self._objectives), np.nan)
        seconds = time.perf_counter() - self._began - self.aside
        figures = {"loss": float(means.sum())}
        if len(self._objectives) > 1:
            figures |= {
                f"loss/{n}": float(loss) for n, loss in zip(self._objectives, means, strict=True)
            }
        figures |= {
            "gradient_norm": float(self._calls[-1].gradient_norm),
            "learning_rate": float(self._calls[-1].learning_rate),
            "skipped_steps": float(self._steps - finite.sum()),
            "examples_per_second": self._steps * global_batch / seconds,
            "step_seconds": seconds / self._steps,
            "input_wait_fraction": min(self.wait / seconds, 1.0),
        }
        if self._replicas > 1:
            reduced = sum(float(outcome.reduce_seconds) for outcome in self._calls)
            figures["allreduce_seconds"] = reduced / self._steps
        return figures
