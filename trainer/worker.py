"""One process's part of a run, once the strategy stands: build, restore, train, wait.

The chief also writes; the others pass the same places and write nothing.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import tensorflow as tf

from trainer.actions import Action, Report, check_metric, find_own, make_actions
from trainer.build import build
from trainer.check.inputs import refuse_unfit
from trainer.config import RESUMABLE_KEYS
from trainer.data.input import Columns
from trainer.errors import EXIT_PEER_LOST, UsageError
from trainer.feeds import local_replicas, most_steps, start_feeds
from trainer.loop import diagnose, jit
from trainer.loop.agree import make_agree
from trainer.loop.evaluate import Evaluation
from trainer.loop.loop import Hooks, Loop, Metrics
from trainer.loop.predict import rehearse
from trainer.loop.step import TrainStep
from trainer.plan import Plan
from trainer.restore import restore
from trainer.run import faults
from trainer.run.directory import RunDirectory
from trainer.run.memory import memory_figures
from trainer.run.profile import Profile
from trainer.run.saver import Saver
from trainer.run.status import Status
from trainer.run.writers import Writer, make_writers
from trainer.task import Task


class Worker:
    """One process of a run; `run` does it all.

    step: how far it is. ended: why an action ended the run early.
    """

    def __init__(
        self, plan: Plan, strategy: tf.distribute.Strategy, stop: faults.StopRequest
    ) -> None:
        self._plan = plan
        self._strategy = strategy
        self._stop = stop
        self._agree = make_agree(strategy, plan.spec.world_size)
        self.directory = RunDirectory(plan.config.output)
        pids = [0] * plan.spec.world_size
        pids[plan.spec.rank] = os.getpid()
        self.pids = self._agree(pids)
        self.step = 0
        self.ended: str | None = None
        self._saver: Saver | None = None
        self._own: tuple[Action, ...] = ()

    def run(self, status: Status | None) -> None:
        """Builds, restores, trains, and waits for the others before it returns.

        status: told how far the run is; None on all but the chief.
        """
        watchdog = self._watchdog(status)
        if self._plan.spec.world_size > 1:
            # What the workers agree on before the first step may hang, too.
            watchdog.start()
        try:
            self._run(status, watchdog)
        finally:
            watchdog.stop()

    def _run(self, status: Status | None, watchdog: faults.Watchdog) -> None:
        plan, config = self._plan, self._plan.config
        self._trained = trained = build(config, plan.dataset, self._strategy)
        watchdog.follow(trained.updates)
        columns = None if trained.task.feeds_itself else trained.task.columns(plan.dataset)
        if plan.choice.name == "tpu" and columns is not None:
            refuse_unfit(trained.task, columns, self._rows)
        if columns is not None and type(trained.task).serve is not Task.serve:
            rehearse(trained.task, self._strategy, columns, self._rows)
        evaluation = self._evaluation()
        self._variables = trained.variables
        self.step, self._meta = restore(plan, trained, self.directory, self._agree, self._say)
        start = self.step
        if plan.spec.is_chief:  # not before: what cannot be built leaves no run behind
            self._own = find_own(config)
            self.directory.start(plan.stored, RESUMABLE_KEYS)
            self.directory.keep_dataset(plan.dataset)
            self._saver = Saver(
                self.directory.checkpoints, self._variables, self._meta,
                keep=config.keep_checkpoints, keep_best=config.keep_best,
                background=config.async_checkpoints == "on", say=self._say,
            )  # fmt: skip
        assert config.steps is not None, "make_plan resolves steps"
        last = config.steps
        if start >= last:
            self._say(f"nothing to do: {config.output} has done {start} of {last} steps")
            self._agree([0])
            return
        in_a_call = min(
            config.steps_per_call, last - start, most_steps(trained.task, columns, self._rows)
        )
        config = config.model_copy(update={"steps_per_call": in_a_call})
        feeds = self._feeds(columns, start, last, in_a_call)
        step = trained.step(config)
        watchdog.start()
        with self._writer(start) as write, self._profile() as profile:

            def beat(done: int) -> None:
                self.step = done
                watchdog.beat()
                if status is not None:
                    status.note(done)

            hooks = Hooks(
                save=self._save,
                finish=self._saver.finish if self._saver else lambda: None,
                write=write,
                beat=beat,
                stop_requested=lambda: self._stop.requested,
                agree=self._agree,
                ended=lambda: self.ended is not None,
                evaluate=lambda done: self._evaluate(evaluation, lambda: beat(done)),
                first=lambda batches: self._settle_jit(step, batches, in_a_call, last - start),
                trouble=lambda batches: diagnose.explain(trained.task, self._strategy, batches),
                figures=self._figures,
                at=profile.at,
            )
            self.step = Loop(step, self._strategy, feeds, config, hooks).run(start)
            self._agree([0])  # who leaves first takes the others' connections along
        self._say(self._farewell())

    @property
    def _rows(self) -> int:
        """Rows of one replica in a step."""
        return self._plan.config.global_batch // self._strategy.num_replicas_in_sync

    def _feeds(
        self, columns: Columns | None, start: int, last: int, in_a_call: int
    ) -> list[Iterator[Any]]:
        """Returns one iterator of super-batches for each replica of this process."""
        return start_feeds(
            self._plan.config, self._plan.dataset, self._trained.task, columns,
            replicas=self._strategy.num_replicas_in_sync, local=self._local_replicas(),
            start=start, last=last, steps=in_a_call,
        )  # fmt: skip

    def _save(self, step: int) -> None:
        self._trained.settle()
        if self._saver is not None:
            self._saver.save(step)

    def _settle_jit(self, step: TrainStep, batches: Any, in_a_call: int, left: int) -> None:
        """Decides whether XLA compiles the step, and keeps that in the checkpoints."""
        replicas = self._strategy.num_replicas_in_sync
        choice = jit.settle(
            step, self._plan.config.jit,
            whole=replicas == 1 and self._plan.choice.name != "tpu",
            before=self._meta.get("compiled"), left=left,
            trial=lambda: jit.choose(step, batches, in_a_call, self._variables),
        )  # fmt: skip
        self._meta["compiled"] = choice.compiled
        self._say(f"jit {'on' if choice.compiled else 'off'}: {choice.reason}")

    def _evaluation(self) -> Evaluation | None:
        """Returns what evaluates during training, if that is wanted."""
        config = self._plan.config
        if not config.eval_every:
            return None
        if self._trained.task.feeds_itself:
            raise UsageError(
                f"eval_every ({config.eval_every}): {config.task} feeds itself, there is no split "
                "to evaluate"
            )

        def go_on() -> bool:
            return not self._agree([int(self._stop.requested)])[0]

        evaluation = Evaluation(
            self._trained.task, self._strategy, self._plan.dataset, config.eval_split,
            batch=config.eval_batch or config.global_batch,
            replicas=self._local_replicas(), go_on=go_on,
        )  # fmt: skip
        check_metric(config, evaluation.names)
        evaluation.rehearse()
        return evaluation

    def _evaluate(self, evaluation: Evaluation | None, beat: Callable[[], None]) -> Metrics | None:
        if evaluation is None:
            return None
        self._trained.settle()
        ema = self._trained.ema
        with ema.in_place() if ema is not None else nullcontext():
            return evaluation(beat)

    def _figures(self) -> Metrics:
        """Returns what a log line has beside the interval's own figures."""
        figures: dict[str, float] = {**memory_figures()}
        if self._trained.scale is not None:
            figures["loss_scale"] = float(self._trained.scale.value)
        return figures

    def _local_replicas(self) -> range:
        return local_replicas(self._plan.spec, self._strategy.num_replicas_in_sync)

    @contextmanager
    def _writer(self, start: int) -> Iterator[Callable[[int, str, Metrics], None]]:
        """Yields what writes figures and runs the actions: all on the chief, nothing elsewhere."""
        if self._saver is None:
            yield lambda step, split, values: self._trained.settle()
            return
        saver, config = self._saver, self._plan.config
        writer: Writer = make_writers(
            config.output, start=start, total=config.steps or 0, say=self._say
        )

        def end(reason: str = "an action ended it") -> None:
            # One line, whatever a user's action gives.
            self.ended = self.ended or " ".join(str(reason or "an action ended it").split())

        actions = make_actions(
            config,
            self.directory,
            self._plan.dataset,
            replicas_here=len(self._local_replicas()),
            start=start,
            mark=saver.mark_best,
            stop=end,
            say=self._say,
            mine=self._own,
        )

        def write(step: int, split: str, values: Metrics) -> None:
            self._trained.settle()  # an action may save
            writer.write(step, split, values)
            for action in actions:
                action(Report(step, split, values, lambda: saver.save(step), end))

        try:
            yield write
        finally:
            saver.wait()
            writer.close()

    def _profile(self) -> Profile:
        """Returns what traces the steps that are to be traced: the chief's."""
        steps = self._plan.config.profiled_steps if self._plan.spec.is_chief else ()
        return Profile(steps, self.directory.tensorboard, self._say)

    def _watchdog(self, status: Status | None) -> faults.Watchdog:
        """A call that never returns ends the process with 138."""

        def on_stall(reason: str) -> None:
            if status is not None:
                status.update("failed", self.step, exit_code=EXIT_PEER_LOST, reason=reason)

        limit = self._plan.config.collective_timeout_seconds
        if self._plan.spec.world_size == 1:
            # Nobody waits for it; and a call that XLA has compiled shows no step before its end.
            return faults.Watchdog(2 * limit, on_stall)
        hint = " (collective_timeout_seconds): another worker hangs or is much slower, see its log"
        return faults.Watchdog(limit, on_stall, hint)

    def _farewell(self) -> str:
        config = self._plan.config
        early = f" ({self.ended})" if self.ended else ""
        trained = f"{config.output} is trained: {self.step:,} steps{early}"
        if self._trained.task.feeds_itself:
            return trained
        splits = self._plan.dataset.manifest.splits
        split = next((name for name in ("test", "eval") if name in splits), "train")
        return (
            f"{trained}; next: castell evaluate --run {config.output} --data "
            f"{shlex.quote(config.data)} --split {split} --output {config.output}-evaluation"
        )

    def _say(self, line: str) -> None:
        if self._plan.spec.is_chief:
            print(line, file=sys.stderr, flush=True)
