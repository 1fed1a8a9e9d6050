"""Runs one worker: meet the others → strategy → Task → loop, in the order that matters.

Before the strategy exists no TensorFlow op may run and no user code is imported ("Collective ops
must be configured at program startup").
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import tensorflow as tf

from trainer.errors import EXIT_DONE, EXIT_FAULT, EXIT_PEER_LOST, CastellError, Stopped
from trainer.plan import Plan
from trainer.run import faults
from trainer.run.directory import RunDirectory
from trainer.run.status import State, Status, next_generation
from trainer.together import losses_named, together
from trainer.worker import Worker


def train(plan: Plan) -> None:
    """Runs the worker that this process is, from meeting the others to the last barrier.

    Raises:
      CastellError: an expected end, with its exit code.
    """
    spec = plan.spec
    last_words = _LastWords()
    with together(plan, plan.fingerprint, last_words.peer_lost) as joined:
        strategy, line = joined.strategy, joined.line
        with losses_named(spec, line):
            worker = Worker(plan, strategy, joined.stop)
        if spec.is_chief:
            worker.directory.lock()
        with _status(plan, strategy, worker) as status, losses_named(spec, line):
            last_words.worker, last_words.status = worker, status
            worker.run(status)


class _LastWords:
    """What is said and written when a peer is lost, whatever this worker is doing just then."""

    def __init__(self) -> None:
        self.worker: Worker | None = None
        self.status: Status | None = None

    def peer_lost(self, reason: str) -> NoReturn:
        """Ends the process with 138; called in the lifeline's thread."""
        print(f"castell: error: {reason}", file=sys.stderr, flush=True)
        faults.leave_peers(reason, self._write)

    def _write(self, reason: str) -> None:
        if self.status is not None and self.worker is not None:
            self.status.update("failed", self.worker.step, exit_code=EXIT_PEER_LOST, reason=reason)


@contextmanager
def _status(
    plan: Plan, strategy: tf.distribute.Strategy, worker: Worker
) -> Iterator[Status | None]:
    """Keeps status.json true while the chief works, and writes how it ended."""
    if not plan.spec.is_chief:
        yield None
        return
    hosts = plan.spec.workers or (socket.gethostname(),)
    path = RunDirectory(plan.config.output).status
    status = Status(
        path,
        replicas=strategy.num_replicas_in_sync,
        strategy=plan.choice.name,
        strategy_reason=plan.choice.reason,
        workers=[
            {"rank": rank, "host": host, "pid": pid}
            for rank, (host, pid) in enumerate(zip(hosts, worker.pids, strict=True))
        ],
        generation=next_generation(path),
    )
    status.start()
    state: State = "failed"
    code, reason = EXIT_FAULT, None
    try:
        yield status
        state, code, reason = "completed", EXIT_DONE, worker.ended
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
