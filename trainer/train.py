"""Runs one worker: meet the others → strategy → Task → loop, in the order that matters.

Before the strategy exists no TensorFlow op may run and no user code is imported ("Collective ops
must be configured at program startup").
"""

from __future__ import annotations

import math
import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import keras
import tensorflow as tf

from trainer.cluster import strategy as strategies
from trainer.cluster.preflight import meet
from trainer.cluster.spec import ClusterSpec
from trainer.config import RESUMABLE_KEYS
from trainer.data.input import Columns, training_batches
from trainer.errors import (
    EXIT_DONE,
    EXIT_FAULT,
    EXIT_PEER_LOST,
    CastellError,
    PeerLost,
    Stopped,
    UsageError,
)
from trainer.loop import seeds
from trainer.loop.agree import make_agree
from trainer.loop.loop import Hooks, Loop, Metrics
from trainer.loop.schedule import make_optimizer
from trainer.loop.step import TrainStep
from trainer.loop.variables import all_variables
from trainer.plan import Plan, plan_lanes
from trainer.run import checkpoint, faults
from trainer.run.directory import RunDirectory
from trainer.run.status import State, Status
from trainer.run.writers import Writer, make_writers
from trainer.task import Task
from trainer.tasks import build_task

# A few of them are in memory at once, on every replica.
_SUPER_BATCH_BYTES = 1 << 27
# Taking an input apart waits for the super-batch that it is filling, seconds that a worker which
# lost its peer does not have. Kept until the process ends, by `faults.leave`, nothing waits.
_inputs: list[Any] = []


def train(plan: Plan) -> None:
    """Runs the worker that this process is, from meeting the others to the last barrier.

    Raises:
      CastellError: an expected end, with its exit code.
    """
    config, spec = plan.config, plan.spec
    with faults.StopRequest() as stop:
        meet(
            spec,
            fingerprint=plan.fingerprint,
            deadline_seconds=config.startup_deadline_seconds,
            stop=lambda: stop.requested,
        )
        strategy = strategies.build(
            plan.choice,
            spec,
            heartbeat_timeout_seconds=config.heartbeat_timeout_seconds,
            collective_timeout_seconds=config.collective_timeout_seconds,
        )
        stop.rearm()
        with _losses_named(spec):
            worker = _Worker(plan, strategy, stop)
        if spec.is_chief:
            worker.directory.lock()
        with _status(plan, strategy, worker) as status, _losses_named(spec):
            worker.run(status)


class _Worker:
    """One process's part of a run; the chief also writes."""

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

    def run(self, status: Status | None) -> None:
        """Builds, restores, trains, and waits for the others before it returns.

        status: told how far the run is; None on all but the chief.
        """
        plan, config, strategy = self._plan, self._plan.config, self._strategy
        lanes = plan_lanes(config, plan.dataset, strategy.num_replicas_in_sync)
        task, optimizers = self._build()
        columns = task.columns(plan.dataset)  # a column that is not there leaves no run behind
        self._variables = all_variables(task, optimizers)
        if plan.spec.is_chief:
            self.directory.start(plan.stored, RESUMABLE_KEYS)
            self.directory.keep_dataset(plan.dataset)
        self.step = start = self._restore()
        assert config.steps is not None, "make_plan resolves steps"
        last = config.steps
        if start >= last:
            self._say(f"nothing to do: {config.output} has done {start} of {last} steps")
            self._agree([0])
            return
        rows = config.global_batch // strategy.num_replicas_in_sync
        in_a_call = min(config.steps_per_call, last - start, _most_steps(columns, rows))
        config = config.model_copy(update={"steps_per_call": in_a_call})
        feeds = [
            training_batches(
                columns, "train", task.preprocess, lanes,
                replica=replica, replicas=strategy.num_replicas_in_sync,
                step=start, last=last, steps=in_a_call,
            )
            for replica in self._local_replicas()
        ]  # fmt: skip
        _inputs.extend(feeds)
        with self._writer(start) as writer, self._watchdog(status) as watchdog:

            def beat(step: int) -> None:
                self.step = step
                watchdog.beat()
                if status is not None:
                    status.note(step)

            hooks = Hooks(
                save=self._save,
                write=writer,
                beat=beat,
                stop_requested=lambda: self._stop.requested,
                agree=self._agree,
            )
            (optimizer, *_) = optimizers.values()
            Loop(
                TrainStep(task, strategy, optimizers, config),
                strategy, feeds, config, lambda: float(optimizer.learning_rate), hooks,
            ).run(start)  # fmt: skip
            self._agree([0])  # who leaves first takes the others' connections along
        self._say(
            f"{config.output} is trained: {last:,} steps; next: castell evaluate --run "
            f"{config.output} --data {config.data} --split test --output {config.output}-evaluation"
        )

    def _build(self) -> tuple[Task, dict[str, keras.optimizers.Optimizer]]:
        config = self._plan.config
        with self._strategy.scope():
            keras.utils.set_random_seed(config.seed)
            task = build_task(config, self._plan.dataset)
            _refuse_drifting_layers(task, self._strategy.num_replicas_in_sync)
            seeds.reseed(task.models(), config.seed)
            optimizers = {}
            for objective in task.objectives():
                optimizers[objective.name] = make_optimizer(config, config.steps or 0)
                optimizers[objective.name].build(list(objective.variables))
        return task, optimizers

    def _restore(self) -> int:
        """Loads the newest whole checkpoint, the same one on all workers; returns its step."""
        commit = None
        if self._plan.spec.is_chief:
            commit = checkpoint.latest(self.directory.checkpoints, self._say)
        # The chief decides: what another one sees on a shared disk may be older.
        (step,) = self._agree([commit.step if commit else 0])
        if step == 0:
            return 0
        commit = commit or checkpoint.commit_at(self.directory.checkpoints, step)
        checkpoint.restore(commit, self._variables)
        self._say(f"resuming {self._plan.config.output} from step {step}")
        return step

    def _save(self, step: int) -> None:
        if not self._plan.spec.is_chief:
            return
        plan = self._plan
        meta = {
            "task": plan.config.task,
            "config_fingerprint": plan.fingerprint,
            "dataset_fingerprint": plan.dataset.manifest.fingerprint,
            "workers": plan.spec.world_size,
            "replicas": self._strategy.num_replicas_in_sync,
            "strategy": plan.choice.name,
        }
        keep = plan.config.keep_checkpoints
        checkpoint.save(self.directory.checkpoints, step, self._variables, meta, keep)

    def _local_replicas(self) -> range:
        count = self._strategy.num_replicas_in_sync // self._plan.spec.world_size
        return range(self._plan.spec.rank * count, (self._plan.spec.rank + 1) * count)

    @contextmanager
    def _writer(self, start: int) -> Iterator[Callable[[int, Metrics], None]]:
        """Yields what writes training metrics: everything on the chief, nothing elsewhere."""
        if not self._plan.spec.is_chief:
            yield lambda step, values: None
            return
        output = self._plan.config.output
        writer: Writer = make_writers(output, start=start, total=self._plan.config.steps or 0)

        def write(step: int, values: Metrics) -> None:
            try:
                writer.write(step, "train", values)
            except (OSError, tf.errors.OpError) as error:
                raise checkpoint.SaveFailed(
                    f"the metrics of step {step} could not be written to {output}: {error}"
                ) from error

        try:
            yield write
        finally:
            writer.close()

    def _watchdog(self, status: Status | None) -> faults.Watchdog:
        """A call that never returns ends the process with 138."""

        def on_stall(reason: str) -> None:
            if status is not None:
                status.update("failed", self.step, exit_code=EXIT_PEER_LOST, reason=reason)

        # A collective gives up by itself first and says which; this catches what is no collective.
        return faults.Watchdog(2 * self._plan.config.collective_timeout_seconds, on_stall)

    def _say(self, line: str) -> None:
        if self._plan.spec.is_chief:
            say(line)


@contextmanager
def _losses_named(spec: ClusterSpec) -> Iterator[None]:
    """Turns what TensorFlow says when a peer is gone into PeerLost."""
    try:
        yield
    except Exception as error:
        own = "{type} {index}".format(**spec.tf_config()["task"])
        if spec.world_size > 1 and (reason := faults.peer_failure(error, own)):
            raise PeerLost(reason) from error
        raise


@contextmanager
def _status(
    plan: Plan, strategy: tf.distribute.Strategy, worker: _Worker
) -> Iterator[Status | None]:
    """Keeps status.json true while the chief works, and writes how it ended."""
    if not plan.spec.is_chief:
        yield None
        return
    hosts = plan.spec.workers or (socket.gethostname(),)
    status = Status(
        RunDirectory(plan.config.output).status,
        replicas=strategy.num_replicas_in_sync,
        strategy=plan.choice.name,
        workers=[
            {"rank": rank, "host": host, "pid": pid}
            for rank, (host, pid) in enumerate(zip(hosts, worker.pids, strict=True))
        ],
    )
    status.start()
    state: State = "failed"
    code, reason = EXIT_FAULT, None
    try:
        yield status
        state, code = "completed", EXIT_DONE
    except CastellError as error:
        state = "preempted" if isinstance(error, Stopped) else "failed"
        code, reason = error.exit_code, str(error)
        raise
    except BaseException as error:
        reason = f"{type(error).__name__}: {error}"
        raise
    finally:
        status.update(state, worker.step, exit_code=code, reason=reason)
        status.stop()


def _most_steps(columns: Columns, rows: int) -> int:
    """Returns how many steps of `rows` rows a super-batch may hold."""
    values = sum(math.prod(n or 1 for n in feature.shape) for feature in columns.features)
    return max(1, _SUPER_BATCH_BYTES // (8 * rows * max(values, 1)))


def _refuse_drifting_layers(task: Task, replicas: int) -> None:
    """BatchNormalization keeps statistics of its own on each replica; only the first are saved."""
    for name, model in task.models().items() if replicas > 1 else ():
        for layer in model._flatten_layers():
            if isinstance(layer, keras.layers.BatchNormalization) and not layer.synchronized:
                raise UsageError(
                    f"layer {layer.name!r} of {name}: BatchNormalization drifts between "
                    f"{replicas} replicas: pass synchronized=True"
                )


def say(line: str) -> None:
    """Prints a line for people."""
    print(line, file=sys.stderr, flush=True)
