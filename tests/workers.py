"""Real trainer processes for tests, forked from one process that has imported TensorFlow.

An import costs ten seconds, a fork a tenth of one. Every wait has a timeout, and a worker that
disappoints shows its log.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["trainer.train", "trainer.trained", "trainer.loop.predict"])

# Long enough for two workers to trace on two busy cores, short enough to notice a hang.
PATIENCE = 120.0


class Worker:
    """A forked process and its log."""

    def __init__(
        self, target: Callable[..., Any], args: Sequence[Any], env: dict[str, str], log: Path
    ) -> None:
        self.log = log
        self._process = _context.Process(target=_child, args=(target, args, env, str(log)))
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def output(self) -> str:
        return self.log.read_text() if self.log.exists() else ""

    def wait(self, timeout: float = PATIENCE) -> int:
        """Returns the exit code (negative: the signal)."""
        self._process.join(timeout)
        code = self._process.exitcode
        assert code is not None, f"still running after {timeout} s:\n{self.output}"
        return code

    def expect(self, code: int, timeout: float = PATIENCE) -> str:
        """Waits, checks the exit code, returns the log."""
        found = self.wait(timeout)
        assert found == code, f"exit code {found}, expected {code}:\n{self.output}"
        return self.output

    def send(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def wait_for(self, condition: Callable[[], bool], timeout: float = PATIENCE) -> None:
        """Waits until `condition`, which must come while the process lives."""
        deadline = time.monotonic() + timeout
        while not condition():
            assert self.is_alive(), f"ended ({self.wait(0)}):\n{self.output}"
            assert time.monotonic() < deadline, f"nothing after {timeout} s:\n{self.output}"
            time.sleep(0.02)

    def is_alive(self) -> bool:
        return self._process.is_alive()

    def end(self) -> None:
        if self._process.is_alive():
            self._process.kill()
        self._process.join(10)


def _child(target: Callable[..., Any], args: Sequence[Any], env: dict[str, str], log: str) -> None:
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    for name in ("TF_CONFIG", "CLUSTER_SPEC"):
        os.environ.pop(name, None)
    os.environ.update(env)
    code = target(*args)
    sys.stdout.flush()
    os._exit(code or 0)


@contextmanager
def processes() -> Iterator[Callable[..., Worker]]:
    """Yields `start(target, *args, env={}, log=path)`; kills at the end what still runs."""
    started: list[Worker] = []

    def start(
        target: Callable[..., Any], *args: Any, log: Path, env: dict[str, str] | None = None
    ) -> Worker:
        started.append(Worker(target, args, env or {}, log))
        return started[-1]

    try:
        yield start
    finally:
        for worker in started:
            worker.end()


def free_ports(count: int) -> list[int]:
    """Returns loopback ports that nobody listens on now."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def tf_configs(count: int) -> list[dict[str, str]]:
    """Returns the environment of each worker of a loopback cluster."""
    cluster = {"worker": [f"127.0.0.1:{port}" for port in free_ports(count)]}
    return [
        {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}})}
        for index in range(count)
    ]
