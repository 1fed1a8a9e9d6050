"""The outer loop: feeds super-batches to the step, and does between calls all that is not a step.

Everything that happens at a step happens at a *boundary* (the end of a call), and calls end where
something is due: a log line, a checkpoint, the last step. All workers pass the same boundaries in
the same order, so that every collective is met by all; only the chief writes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import tensorflow as tf

from trainer.config import TrainConfig
from trainer.data.rows import DamagedShard
from trainer.errors import CastellError, Diverged, Stopped, UsageError
from trainer.loop.step import Outcome, TrainStep

# A hundred steps in a row without one finite gradient do not recover by themselves.
DIVERGED_AFTER = 100

Metrics = Mapping[str, float]


@dataclass(frozen=True)
class Hooks:
    """What the loop calls at boundaries.

    save(step): writes a checkpoint (every worker calls it, the chief writes). write(step, values):
    training metrics. beat(step): signs of life. stop_requested(): has this process been told to
    stop. agree(numbers): sums over workers (see `agree`).
    """

    save: Callable[[int], None]
    write: Callable[[int, Metrics], None]
    beat: Callable[[int], None]
    stop_requested: Callable[[], bool]
    agree: Callable[[Sequence[int]], list[int]]


class Loop:
    """Runs steps `start` … `config.steps` - 1.

    feeds: one endless iterator of super-batches (features, label, weight) a local replica,
    beginning at `start`.
    """

    def __init__(
        self,
        step: TrainStep,
        strategy: tf.distribute.Strategy,
        feeds: Sequence[Iterator[Any]],
        config: TrainConfig,
        learning_rate: Callable[[], float],
        hooks: Hooks,
    ) -> None:
        self._step = step
        self._strategy = strategy
        self._feeds = feeds
        self._config = config
        self._learning_rate = learning_rate
        self._hooks = hooks
        self._nonfinite_run = tf.constant(0)
        self._interval = Interval()

    def run(self, start: int) -> None:
        """Trains until the last step; each boundary may end it early.

        Raises:
          Stopped: somebody was told to stop; the checkpoint of this step is written.
          UsageError: a worker read a damaged shard.
          Diverged: no finite step for long.
        """
        last = self._config.steps
        assert last is not None, "steps are resolved before the loop starts"
        done, used, batches = start, 0, None
        saved = start
        while done < last:
            damage = None
            if batches is None:
                batches, damage = self._next()
            self._agree_to_go_on(done, saved, damage)
            count = min(self._to_boundary(done), self._config.steps_per_call - used)
            outcome = self._step(
                batches, first=used, count=count, step=done, nonfinite_run=self._nonfinite_run
            )
            self._nonfinite_run = outcome.nonfinite_run
            done, used = done + count, used + count
            if used == self._config.steps_per_call:
                used, batches = 0, None
            self._interval.add(outcome, count)
            self._hooks.beat(done)
            if done % self._config.log_every == 0 or done == last:
                self._log(done)
            if done % self._config.checkpoint_every == 0 or done == last:
                self._hooks.save(done)
                saved = done

    def _to_boundary(self, done: int) -> int:
        """Steps until something is due."""
        every = (self._config.log_every, self._config.checkpoint_every)
        return min((self._config.steps or 0) - done, *(n - done % n for n in every))

    def _next(self) -> tuple[Any, DamagedShard | None]:
        """Fetches one super-batch for each local replica, and how long that took."""
        began = time.perf_counter()
        try:
            batches = [next(feed) for feed in self._feeds]
        except DamagedShard as error:
            return None, error
        self._interval.wait += time.perf_counter() - began
        parts = iter(batches)
        return self._strategy.experimental_distribute_values_from_function(
            lambda context: next(parts)
        ), None

    def _agree_to_go_on(self, done: int, saved: int, damage: DamagedShard | None) -> None:
        stops, damaged = self._hooks.agree(
            [int(self._hooks.stop_requested()), int(damage is not None)]
        )
        if damaged:
            self._leave_together(
                UsageError(str(damage or "another worker read a damaged shard: see its log"))
            )
        if stops:
            if saved != done:
                self._hooks.save(done)
            kept = (
                f"the checkpoint of step {done} is written" if done else "nothing was trained yet"
            )
            self._leave_together(Stopped(f"told to stop: {kept}"))

    def _leave_together(self, end: CastellError) -> NoReturn:
        """Raises what all workers raise here, once all are here.

        Who leaves first takes the others' connections along: a chief that still writes the last
        checkpoint would lose it, and report a lost peer.
        """
        self._hooks.agree([0, 0])
        raise end

    def _log(self, done: int) -> None:
        metrics = self._interval.metrics(self._config.global_batch)
        self._hooks.write(done, {**metrics, "learning_rate": self._learning_rate()})
        self._interval = Interval()
        failed = int(self._nonfinite_run)
        if failed >= DIVERGED_AFTER:
            self._leave_together(
                Diverged(
                    f"the loss was not finite for {failed} steps in a row up to step {done}: lower "
                    "--learning-rate, set --clip-norm, or look for extreme values in the data"
                )
            )


class Interval:
    """Figures of the steps between two log lines."""

    def __init__(self) -> None:
        self.wait = 0.0
        self._began = time.perf_counter()
        self._steps = 0
        self._calls: list[tuple[Outcome, int]] = []

    def add(self, outcome: Outcome, count: int) -> None:
        """Counts a call's steps; nothing is read off the device yet."""
        self._calls.append((outcome, count))
        self._steps += count

    def metrics(self, global_batch: int) -> dict[str, float]:
        """Returns the interval's loss, norm, speed; waits for the device."""
        finite = [int(outcome.finite) for outcome, _ in self._calls]
        losses = [float(outcome.loss) for outcome, _ in self._calls]
        total = sum(loss * n for loss, n in zip(losses, finite, strict=True) if n)
        seconds = time.perf_counter() - self._began
        return {
            "loss": total / sum(finite) if sum(finite) else float("nan"),
            "gradient_norm": float(self._calls[-1][0].gradient_norm),
            "skipped_steps": float(self._steps - sum(finite)),
            "examples_per_second": self._steps * global_batch / seconds,
            "step_seconds": seconds / self._steps,
            "input_wait_fraction": min(self.wait / seconds, 1.0),
        }
