"""The evaluator of a cluster: follows a run directory and evaluates every checkpoint in it.

It never joins the workers' all-reduce, so that it can be slow, or come and go, without a worker
noticing. It takes the configuration that the chief wrote, and writes files of its own:
evaluations.jsonl and tensorboard/<split>_evaluator; best.json only if the run does not evaluate
itself.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass, replace

from trainer.actions import check_metric
from trainer.actions.metric import mode_of
from trainer.cluster import strategy as strategies
from trainer.cluster.devices import find_devices
from trainer.cluster.spec import ClusterSpec
from trainer.config import MOST_STEPS, TrainConfig
from trainer.data.source import cache_of
from trainer.errors import CastellError, Stopped, UsageError
from trainer.loop.evaluate import Evaluation, Figures
from trainer.run import commits, faults, marks
from trainer.run.commits import Commit
from trainer.run.damage import DAMAGED
from trainer.run.marks import Mark
from trainer.run.watch import RunWatch
from trainer.run.writers.jsonl import JsonlWriter
from trainer.run.writers.tensorboard import TensorBoardWriter
from trainer.trained import Built, build


def follow(config: TrainConfig, spec: ClusterSpec) -> None:
    """Evaluates each commit of the run in `config.output` until the run has ended.

    Raises:
      UsageError: the run cannot be evaluated (no such split or metric).
      PeerLost: the run does not begin, or its chief gives no sign of life any more.
      Stopped: told to stop.
    """
    with faults.StopRequest() as stop:
        run = RunWatch(
            config.output,
            patience_seconds=config.startup_deadline_seconds,
            last_step=config.steps,
            stopped=lambda: stop.requested,
            say=_say,
        )
        run.wait_for_start()
        with faults.sigterm_waits():
            choice = strategies.choose(spec, config.strategy, find_devices(), config.cpu_replicas)
            # Both limits are about peers, of which an evaluator has none.
            strategy = strategies.build(
                choice,
                spec,
                heartbeat_timeout_seconds=config.heartbeat_timeout_seconds,
                collective_timeout_seconds=config.collective_timeout_seconds,
            )
            stop.rearm()
        with strategy.scope():
            built = build(config.output, data=config.data or None)
        if built.task.feeds_itself:
            _say(f"{built.config.task} feeds itself, there is no split to evaluate; leaving")
            return
        evaluation = Evaluation(
            built.task,
            strategy,
            replace(built.dataset, cache=cache_of(config)),
            built.config.eval_split,
            batch=built.config.eval_batch or built.config.global_batch,
            go_on=lambda: not stop.requested,
        )
        check_metric(built.config, evaluation.names)
        _say(f"evaluator: following {config.output}: {choice.name}, {choice.reason}")
        evaluator = _Evaluator(run, built, evaluation)
        try:
            for commit in run.commits(evaluator.done):
                evaluator.evaluate(commit)
        finally:
            evaluator.close()
        _say(f"evaluator: {config.output} has ended ({run.state}), all of it is evaluated")


@dataclass(frozen=True)
class _Files:
    """What the evaluator writes."""

    lines: JsonlWriter
    events: TensorBoardWriter


class _Evaluator:
    """Loads commits into the Task, one after another, and writes their figures.

    done: steps that need no look any more.
    """

    def __init__(self, run: RunWatch, built: Built, evaluation: Evaluation) -> None:
        self._checkpoints = run.directory.checkpoints
        self._built = built
        self._evaluation = evaluation
        path = os.path.join(run.directory.path, "evaluations.jsonl")
        self.done = _steps_in(path, evaluation.split)
        self._files = _Files(
            JsonlWriter(path, resume_step=MOST_STEPS),  # no line is ever dropped
            TensorBoardWriter(run.directory.tensorboard),
        )

    def evaluate(self, commit: Commit) -> None:
        """Evaluates one commit; one that is deleted meanwhile is passed over.

        Raises:
          UsageError: it does not fit the run, or a shard is damaged.
          Stopped: told to stop on the way.
        """
        try:
            self._built.restore(commit)
        except UsageError:
            if os.path.exists(os.path.join(commit.path, commits.COMMIT_NAME)):
                raise
            return
        began = time.monotonic()
        figures = self._evaluation()
        if figures is None:
            raise Stopped("told to stop: what was evaluated is kept")
        self._write(commit.step, figures)
        shown = "  ".join(f"{name} {value:.4g}" for name, value in figures.items())
        _say(
            f"evaluator  {self._evaluation.split}  step {commit.step}  {shown}  "
            f"{time.monotonic() - began:.1f} s"
        )

    def close(self) -> None:
        """Lets go of the files."""
        self._files.lines.close()
        self._files.events.close()

    def _write(self, step: int, figures: Figures) -> None:
        split, config = self._evaluation.split, self._built.config
        try:
            self._files.lines.write(step, split, figures)
            self._files.events.write(step, f"{split}_evaluator", figures)
            self._files.events.flush()
            if config.keep_best and not config.eval_every:
                self._mark(Mark(step, config.best_metric, figures[config.best_metric]))
        except OSError as error:
            raise CastellError(
                f"the evaluation of step {step} could not be written: {error.strerror}"
            ) from error

    def _mark(self, mark: Mark) -> None:
        """Marks a commit among the best that are still there, and keeps it from being deleted."""
        config = self._built.config
        if mark.value != mark.value or not self._is_there(mark):
            return
        known = [m for m in marks.read(self._checkpoints) if self._is_there(m)]
        best = marks.ranked(known, mark, mode_of(config), config.keep_best)
        marks.write(self._checkpoints, best)

    def _is_there(self, mark: Mark) -> bool:
        return os.path.exists(os.path.join(self._checkpoints, commits.step_name(mark.step)))


def _steps_in(path: str, split: str) -> set[int]:
    """Returns the steps that an evaluator before this one has evaluated."""
    found: set[int] = set()
    try:
        with open(path, "rb") as file:
            lines = file.readlines()
    except FileNotFoundError:
        return found
    for line in lines:
        try:
            content = json.loads(line)
            if content["split"] == split:
                found.add(int(content["step"]))
        except DAMAGED:
            continue  # cut off when the process was killed
    return found


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
