"""Engines of one machine: this process, or a pool that is forked from a clean server.

The pool's processes come from a server that has imported the phases and started no thread: forking
the caller itself would copy its locks, and starting fresh ones would import pyarrow in each.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from types import TracebackType
from typing import Self

from components.shard_data.engine import Job, Result
from trainer.errors import UsageError

_PRELOADED = ["components.shard_data.phases"]


def cores() -> int:
    """Returns how many CPUs this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Here:
    """Does one job after another in this process."""

    def __enter__(self) -> Self:
        """Nothing has to be started."""
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing has to be stopped."""

    def run(self, task: Callable[[Job], Result], jobs: Sequence[Job]) -> Iterator[Result]:
        """Yields the results in order."""
        return map(task, jobs)


class Processes:
    """Does up to `number` jobs at once."""

    def __init__(self, number: int) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(_PRELOADED)
        self._pool = ProcessPoolExecutor(number, mp_context=context, initializer=_start)

    def __enter__(self) -> Self:
        """The pool starts with its first job."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Waits for jobs that have begun; after an error the others are forgotten."""
        self._pool.shutdown(cancel_futures=True)

    def run(self, task: Callable[[Job], Result], jobs: Sequence[Job]) -> Iterator[Result]:
        """Yields the results in order.

        Raises:
          UsageError: the system killed a process, which it does when memory runs out.
        """
        try:
            yield from self._pool.map(task, jobs)
        except BrokenProcessPool:
            raise UsageError(
                "a process was killed while sharding, as the system does when memory runs out: "
                "lower --memory or --processes"
            ) from None


def _start() -> None:
    """Ctrl-C reaches every process of a terminal; the one that waits for these says what it was."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import pyarrow as pa

    # The processes share the cores; threads of theirs would be in each other's way.
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
