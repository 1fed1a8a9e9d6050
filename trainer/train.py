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
            worker = Worker(plan, strategy, stop)
        if spec.is_chief:
            worker.directory.lock()
        with _status(plan, strategy, worker) as status, _losses_named(spec):
            worker.run(status)


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
    plan: Plan, strategy: tf.distribute.Strategy, worker: Worker
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
