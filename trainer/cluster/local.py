"""N workers on this machine: starts them, passes signals on, and sees that all of them end.

Each listens on a free loopback port; how a fork becomes a worker stands in `fork`, and what a
worker does is its `body`.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from trainer.cluster.fork import Body, Worker, start
from trainer.cluster.spec import ClusterSpec, Role
from trainer.errors import (
    EXIT_DIVERGED,
    EXIT_DONE,
    EXIT_FAULT,
    EXIT_PEER_LOST,
    EXIT_STOPPED,
    EXIT_USAGE,
    UsageError,
)

_POLL_SECONDS = 0.05
# Once one has failed, the others have so long to find out by themselves before they are told.
_TELL_SECONDS = 1.0
_TAIL_LINES = 15
# The most telling first: a cause outranks the peers that only lost sight of it.
_RANKING = (EXIT_USAGE, EXIT_FAULT, EXIT_DIVERGED, EXIT_PEER_LOST, EXIT_STOPPED, EXIT_DONE)


def run_local(
    workers: int, body: Body, log_directory: str | Path, *, grace_seconds: float = 10.0
) -> int:
    """Runs `body` in `workers` forked processes and returns the most telling exit code.

    body: gets the process's ClusterSpec and returns its exit code; an exception that is not a
    CastellError is printed with its traceback and counts as 1. log_directory: where
    `worker-<rank>.log` of all but the chief go; made if missing, logs are appended to; for a URL a
    temporary directory stands in, which is said.
    grace_seconds: how long the others may take to leave once a worker has failed. After a second
    they are told to (SIGTERM: who still waits for the others to come has no connection whose loss
    would say so), in the end made to; a checkpoint that is being written is lost then, those before
    it are not. SIGTERM and SIGINT are passed on once as SIGTERM; a second SIGINT kills. If this
    process is killed, so are the workers.

    Call it in the main thread, before any TensorFlow op.
    """
    logs = _log_directory(str(log_directory))
    addresses = tuple(f"127.0.0.1:{port}" for port in free_ports(workers))
    sys.stdout.flush()
    sys.stderr.flush()
    with _signals() as asked:
        crew = _Crew(asked, grace_seconds)
        try:
            for rank in range(workers):
                role: Role = "worker" if rank else "chief"
                spec = ClusterSpec(role, rank, addresses, f"--workers {workers}")
                crew.add(start(spec, body, logs))
            crew.wait()
        finally:
            crew.kill()
    crew.report()
    return crew.exit_code()


def _log_directory(wanted: str) -> Path:
    if "://" in wanted:
        directory = Path(tempfile.mkdtemp(prefix="castell-logs-"))
        print(f"logs of the other workers: {directory}", file=sys.stderr)
        return directory
    directory = Path(wanted)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write logs to {directory}: {error.strerror}") from None
    return directory


def free_ports(count: int) -> list[int]:
    """Returns ports that nothing on this machine listens on.

    They lie below the range from which the kernel takes the ports of outgoing connections, so that
    none of those grabs one before its worker listens.
    """
    candidates = list(range(20000, _first_ephemeral_port()))
    random.SystemRandom().shuffle(candidates)
    free: list[int] = []
    for port in candidates:
        if len(free) == count:
            break
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
            except OSError:
                continue
            free.append(port)
    return free


def _first_ephemeral_port() -> int:
    try:
        first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError):
        first = 32768
    return first if first > 21000 else 65536


@dataclass
class _Asked:
    """What the outside has asked for, noted by the signal handlers and acted on by the loop."""

    to_stop: bool = False
    to_kill: bool = False


@contextmanager
def _signals() -> Iterator[_Asked]:
    """Notes SIGTERM and SIGINT while the workers run."""
    asked = _Asked()

    def note(number: int, frame: FrameType | None) -> None:
        asked.to_kill = asked.to_kill or (asked.to_stop and number == signal.SIGINT)
        asked.to_stop = True

    before = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass
class _Crew:
    """The workers and the clock of their end."""

    asked: _Asked
    grace_seconds: float
    workers: list[Worker] = field(default_factory=list)
    _told: bool = False
    _failed_at: float | None = None

    def add(self, worker: Worker) -> None:
        self.workers.append(worker)

    def wait(self) -> None:
        """Returns when every worker has ended."""
        while self._running():
            for worker in self._running():
                self._reap(worker)
            self._hurry()
            time.sleep(_POLL_SECONDS)

    def _running(self) -> list[Worker]:
        return [worker for worker in self.workers if worker.code is None]

    def _reap(self, worker: Worker, options: int = os.WNOHANG) -> None:
        pid, status = os.waitpid(worker.pid, options)
        if pid == 0:
            return
        code = os.waitstatus_to_exitcode(status)
        worker.killed_by = max(0, -code)
        worker.code = _as_exit_code(code)
        # One that was told to stop leaves when the others do, perhaps after a long checkpoint.
        if worker.code not in (EXIT_DONE, EXIT_STOPPED) and self._failed_at is None:
            self._failed_at = time.monotonic()

    def _hurry(self) -> None:
        now = time.monotonic()
        failed_since = 0.0 if self._failed_at is None else now - self._failed_at
        if (self.asked.to_stop or failed_since >= _TELL_SECONDS) and not self._told:
            self._told = True
            self._signal(signal.SIGTERM)
        if self.asked.to_kill or failed_since >= self.grace_seconds:
            self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        for worker in self._running():
            # SIGKILL to the group, with whatever the worker has started itself.
            (os.killpg if number == signal.SIGKILL else os.kill)(worker.pid, number)

    def kill(self) -> None:
        """Ends whoever is left, for when this process cannot go on."""
        self._signal(signal.SIGKILL)
        for worker in self._running():
            self._reap(worker, 0)

    def exit_code(self) -> int:
        codes = {worker.code for worker in self.workers}
        return next(code for code in _RANKING if code in codes)

    def report(self) -> None:
        """Shows on stderr how workers failed, and the end of their logs."""
        chief = self.workers[0].code
        for worker in self.workers:
            if worker.code in (EXIT_DONE, EXIT_STOPPED):
                continue
            if worker.killed_by:
                name = signal.Signals(worker.killed_by).name
                print(f"worker {worker.rank} was killed by {name}", file=sys.stderr)
            # A mistake that all of them saw is one line, which the chief has written.
            if worker.log and not (worker.code == chief == EXIT_USAGE):
                _show_tail(worker)


def _as_exit_code(code: int) -> int:
    """Maps a wait status to the trainer's exit codes.

    A worker that the system killed (SIGKILL: out of memory, an operator) is a lost peer; any other
    signal is a crash of ours.
    """
    if code in (-signal.SIGTERM, -signal.SIGINT):
        return EXIT_STOPPED
    if code == -signal.SIGKILL:
        return EXIT_PEER_LOST
    return code if code in _RANKING else EXIT_FAULT


def _show_tail(worker: Worker) -> None:
    assert worker.log is not None
    with worker.log.open("rb") as log:
        log.seek(worker.log_start)
        lines = log.read().decode("utf-8", "replace").splitlines()
    print(f"worker {worker.rank} ended with {worker.code}; {worker.log}:", file=sys.stderr)
    for line in lines[-_TAIL_LINES:]:
        print(f"  {line}", file=sys.stderr)
