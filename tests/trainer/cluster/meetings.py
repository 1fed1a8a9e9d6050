"""Real processes that meet over loopback, and what each of them was told."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from trainer.cluster.local import free_ports
from trainer.cluster.preflight import meet
from trainer.cluster.spec import ClusterSpec
from trainer.errors import CastellError

_context = multiprocessing.get_context("fork")


@dataclass
class Member:
    """A process that calls `meet`, started already."""

    process: Any
    _results: Connection

    def outcome(self, timeout: float = 20.0) -> tuple[int, str]:
        """Returns exit code and message; (0, "") when it met the others."""
        assert self._results.poll(timeout), f"still waiting after {timeout} s"
        code, message = self._results.recv()
        assert "\n" not in message
        return code, message


Start = Callable[..., Member]


@contextmanager
def members() -> Iterator[Start]:
    """Yields start(spec, fingerprint="f", deadline_seconds=10); kills at the end who is left."""
    started: list[Member] = []

    def start(
        spec: ClusterSpec, *, fingerprint: str = "f", deadline_seconds: float = 10.0
    ) -> Member:
        receiver, sender = _context.Pipe(duplex=False)
        process = _context.Process(target=_meet, args=(sender, spec, fingerprint, deadline_seconds))
        process.start()
        started.append(Member(process, receiver))
        return started[-1]

    try:
        yield start
    finally:
        for member in started:
            member.process.kill()
            member.process.join(10)


def _meet(results: Connection, spec: ClusterSpec, fingerprint: str, deadline: float) -> None:
    try:
        meet(spec, fingerprint=fingerprint, deadline_seconds=deadline)
        results.send((0, ""))
    except CastellError as error:
        results.send((error.exit_code, str(error)))


def cluster(size: int, addresses: Sequence[str] = ()) -> list[ClusterSpec]:
    """Returns the ClusterSpec of each worker on free loopback ports."""
    workers = tuple(addresses) or tuple(f"127.0.0.1:{port}" for port in free_ports(size))
    return [
        ClusterSpec("worker" if rank else "chief", rank, workers, "test") for rank in range(size)
    ]


def outcomes(started: Sequence[Member]) -> list[tuple[int, str]]:
    """Returns what each was told, in order."""
    return [member.outcome() for member in started]


def until(condition: Callable[[], bool], timeout: float = 10.0) -> None:
    """Waits for `condition`."""
    ends = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.02)
