"""The workers of one start on this machine: waits for them, hurries them, says how they ended."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import dataclass, field

from trainer.cluster.fork import Worker
from trainer.errors import (
    EXIT_DIVERGED,
    EXIT_DONE,
    EXIT_FAULT,
    EXIT_PEER_LOST,
    EXIT_STOPPED,
    EXIT_USAGE,
)

_POLL_SECONDS = 0.05
# Once one has failed, the others have so long to find out by themselves before they are told.
_TELL_SECONDS = 1.0
_TAIL_LINES = 15
# The most telling first: a cause outranks the peers that only lost sight of it.
_RANKING = (EXIT_USAGE, EXIT_FAULT, EXIT_DIVERGED, EXIT_PEER_LOST, EXIT_STOPPED, EXIT_DONE)
_RETRYABLE = (EXIT_PEER_LOST, EXIT_STOPPED, EXIT_DONE)


@dataclass
class Asked:
    """What the outside has asked for, noted by the signal handlers and acted on by the loop."""

    to_stop: bool = False
    to_kill: bool = False


@dataclass
class Crew:
    """The workers of one start, and the clock of their end.

    grace_seconds: how long the others may take to leave once a worker has failed.
    """

    asked: Asked
    grace_seconds: float
    workers: list[Worker] = field(default_factory=list)
    _told: bool = False
    _failed_at: float | None = None

    def add(self, worker: Worker) -> None:
        """Counts a worker that has been started."""
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
        worker.code = as_exit_code(code)
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
            worker.sent = number
            # SIGKILL to the group, with whatever the worker has started itself.
            (os.killpg if number == signal.SIGKILL else os.kill)(worker.pid, number)

    def kill(self) -> None:
        """Ends whoever is left, for when this process cannot go on."""
        self._signal(signal.SIGKILL)
        for worker in self._running():
            self._reap(worker, 0)

    def exit_code(self) -> int:
        """Returns the most telling code of all."""
        codes = {worker.code for worker in self.workers}
        return next(code for code in _RANKING if code in codes)

    def worth_a_restart(self) -> str | None:
        """Returns what befell the workers if starting all again can help, None if it cannot.

        A platform looks at it in the same way: a lost peer, a stop and a signal are worth it, a
        mistake, a fault and a divergence would only come again.
        """
        if any(not w.killed_by and w.code not in _RETRYABLE for w in self.workers):
            return None
        return self.fate()

    def fate(self) -> str | None:
        """Returns how the worker ended that took the others along, None if all are done.

        It has the most telling code. Of equal ones, one that a signal from elsewhere killed goes
        first, one that a signal from here ended last.
        """
        failed = [worker for worker in self.workers if worker.code != EXIT_DONE]
        first = min(
            failed,
            key=lambda w: (
                _RANKING.index(w.code),
                w.killed_by in (0, w.sent),
                w.killed_by != 0,
                w.rank,
            ),
            default=None,
        )
        return None if first is None else self._fate(first)

    @staticmethod
    def _fate(worker: Worker) -> str:
        if worker.killed_by == worker.sent == signal.SIGKILL:
            return f"worker {worker.rank} had not left when told to and was killed"
        if worker.killed_by:
            return f"worker {worker.rank} was killed by {signal.Signals(worker.killed_by).name}"
        return f"worker {worker.rank} ended with {worker.code}"

    def report(self) -> None:
        """Shows on stderr how workers failed, a line each, and the end of their logs below it."""
        chief = self.workers[0].code
        for worker in self.workers:
            if worker.code in (EXIT_DONE, EXIT_STOPPED):
                continue
            # A mistake that all of them saw is one line, which the chief has written.
            if worker.code == chief == EXIT_USAGE:
                continue
            lines = _last_words(worker)
            if worker.killed_by or worker.log:
                where = f"; {worker.log}:" if lines else ""
                print(f"{self._fate(worker)}{where}", file=sys.stderr)
            for line in lines:
                print(f"  {line}", file=sys.stderr)


def as_exit_code(code: int) -> int:
    """Maps a wait status to the trainer's exit codes.

    A worker that the system killed (SIGKILL: out of memory, an operator) is a lost peer; any other
    signal is a crash of ours.
    """
    if code in (-signal.SIGTERM, -signal.SIGINT):
        return EXIT_STOPPED
    if code == -signal.SIGKILL:
        return EXIT_PEER_LOST
    return code if code in _RANKING else EXIT_FAULT


def _last_words(worker: Worker) -> list[str]:
    """Returns the end of what it wrote; the chief's stands on the terminal already."""
    # Who was killed before it was settled has no log yet.
    if worker.log is None or not worker.log.exists():
        return []
    with worker.log.open("rb") as log:
        log.seek(worker.log_start)
        return log.read().decode("utf-8", "replace").splitlines()[-_TAIL_LINES:]
