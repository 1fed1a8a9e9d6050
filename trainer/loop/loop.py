"""The outer loop: feeds super-batches to the step, and does between calls all that is not a step.

Everything that happens at a step happens at a *boundary* (the end of a call), and calls end where
something is due: a log line, an evaluation, a checkpoint, the last step. All workers pass the same
boundaries in the same order, so that every collective is met by all; only the chief writes.
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
from trainer.loop.interval import Interval
from trainer.loop.step import TrainStep

# A hundred steps in a row without one finite gradient do not recover by themselves.
DIVERGED_AFTER = 100

Metrics = Mapping[str, float]


@dataclass(frozen=True)
class Hooks:
    """What the loop calls at boundaries.

    save(step): keeps a checkpoint (every worker calls it, the chief writes). finish(): returns when
    it is written. write(step, split,
    figures): metrics and what follows from them. beat(step): signs of life. stop_requested(): has
    this process been told to stop. agree(numbers): sums over workers (see `agree`). ended(): does
    this process want the run to end here (early stopping). evaluate(step): figures of the
    evaluation split, None if it was cut short by a stop; a collective. first(batches, step): sees
    the first super-batch before anything is trained. trouble(batches, step): explains why no step
    of the first call was finite. figures(): more of them for a log line. at(step): a call is about
    to begin, or the last one has ended (the profiler's trace).
    """

    save: Callable[[int], None]
    finish: Callable[[], None]
    write: Callable[[int, str, Metrics], None]
    beat: Callable[[int], None]
    stop_requested: Callable[[], bool]
    agree: Callable[[Sequence[int]], list[int]]
    ended: Callable[[], bool] = lambda: False
    evaluate: Callable[[int], Metrics | None] = lambda step: None
    first: Callable[[Any], None] = lambda batches: None
    trouble: Callable[[Any], None] = lambda batches: None
    figures: Callable[[], Metrics] = dict
    at: Callable[[int], None] = lambda step: None


class Loop:
    """Runs steps `start` … `config.steps` - 1.

    feeds: one endless iterator of super-batches (features, label, weight) a local replica,
    beginning at `start`; none if the task feeds itself.
    """

    def __init__(
        self,
        step: TrainStep,
        strategy: tf.distribute.Strategy,
        feeds: Sequence[Iterator[Any]],
        config: TrainConfig,
        hooks: Hooks,
    ) -> None:
        self._step = step
        self._strategy = strategy
        self._feeds = feeds
        self._config = config
        self._hooks = hooks
        self._nonfinite_run = tf.constant(0)
        self._interval = self._new_interval()
        self._every = tuple(
            every
            for every in (config.log_every, config.checkpoint_every, config.eval_every)
            if every
        )

    def run(self, start: int) -> int:
        """Trains until the last step and returns it; each boundary may end it early.

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
            if used == 0:
                batches, damage = self._next()
            if not self._agree_to_go_on(done, saved, damage):
                break
            if done == start:
                self._hooks.first(batches)
                self._interval = self._new_interval()
            count = min(self._to_boundary(done), self._config.steps_per_call - used)
            self._hooks.at(done)
            outcome = self._step(
                batches, first=used, count=count, step=done, nonfinite_run=self._nonfinite_run
            )
            self._nonfinite_run = outcome.nonfinite_run
            if done == 0 and int(outcome.finite) == 0:
                self._hooks.trouble(batches)
            done, used = done + count, (used + count) % self._config.steps_per_call
            self._interval.add(outcome, count)
            self._hooks.beat(done)
            if done % self._config.log_every == 0 or done == last:
                self._log(done)
            if self._evaluate_at(done, last):
                self._evaluate(done)
            if done % self._config.checkpoint_every == 0 or done == last:
                self._hooks.save(done)
                saved = done
        self._hooks.at(done)
        self._hooks.finish()
        return done

    def _to_boundary(self, done: int) -> int:
        """Steps until something is due."""
        ends = (self._config.steps or 0, *self._config.profiled_steps)
        return min(
            *(end - done for end in ends if end > done), *(n - done % n for n in self._every)
        )

    def _evaluate_at(self, done: int, last: int) -> bool:
        every = self._config.eval_every
        return bool(every) and (done % (every or 1) == 0 or done == last)

    def _next(self) -> tuple[Any, DamagedShard | None]:
        """Fetches one super-batch for each local replica, and how long that took."""
        if not self._feeds:
            return None, None
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

    def _agree_to_go_on(self, done: int, saved: int, damage: DamagedShard | None) -> bool:
        """Returns whether the run goes on; False if an action ended it, checkpoint and all."""
        hooks = self._hooks
        stops, damaged, ended = hooks.agree(
            [int(hooks.stop_requested()), int(damage is not None), int(hooks.ended())]
        )
        if damaged:
            self._leave_together(
                UsageError(str(damage or "another worker read a damaged shard: see its log"))
            )
        if (stops or ended) and saved != done:
            hooks.save(done)
        if stops:
            hooks.finish()
            kept = (
                f"the checkpoint of step {done} is written" if done else "nothing was trained yet"
            )
            self._leave_together(Stopped(f"told to stop: {kept}"))
        return not ended

    def _leave_together(self, end: CastellError) -> NoReturn:
        """Raises what all workers raise here, once all are here.

        Who leaves first takes the others' connections along: a chief that still writes the last
        checkpoint would lose it, and report a lost peer.
        """
        self._hooks.agree([0, 0, 0])
        raise end

    def _log(self, done: int) -> None:
        metrics = self._interval.metrics(self._config.global_batch)
        self._hooks.write(done, "train", {**metrics, **self._hooks.figures()})
        self._interval = self._new_interval()
        failed = int(self._nonfinite_run)
        if failed >= min(DIVERGED_AFTER, self._config.steps or 0):
            self._leave_together(
                Diverged(
                    f"the loss was not finite for {failed} steps in a row up to step {done}: lower "
                    "--learning-rate, set --clip-norm, or look for extreme values in the data"
                )
            )

    def _evaluate(self, done: int) -> None:
        began = time.perf_counter()
        figures = self._hooks.evaluate(done)
        if figures is not None:
            self._hooks.write(done, self._config.eval_split, figures)
        self._hooks.beat(done)
        self._interval.aside += time.perf_counter() - began

    def _new_interval(self) -> Interval:
        return Interval(self._step.objectives, self._strategy.num_replicas_in_sync)
