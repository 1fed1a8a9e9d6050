"""Who does the jobs of a phase: this process, a pool of processes, or Apache Beam.

A phase is a function over jobs that know nothing of each other; its results come in the order of
the jobs. So every engine makes the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

from components.shard_data.options import ShardOptions
from components.shard_data.work import Work

Job = TypeVar("Job")
Result = TypeVar("Result")


class Engine(Protocol):
    """Runs one phase after another."""

    def run(self, task: Callable[[Job], Result], jobs: Sequence[Job]) -> Iterator[Result]:
        """Yields the results of all jobs in their order, as they come."""
        ...


def choose(options: ShardOptions, processes: int, work: Work) -> AbstractContextManager[Engine]:
    """Returns the engine that the options ask for, with so many processes on this machine."""
    if options.engine == "beam":
        from components.shard_data.engine.beam import Beam

        return Beam(options.beam_options, work)
    from components.shard_data.engine.local import Here, Processes

    return Here() if processes == 1 else Processes(processes)
