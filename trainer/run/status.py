"""status.json: how the run is doing, for whoever watches it from outside.

The file is replaced every few seconds while the process lives, so an old `updated` means a process
that hangs or is gone. Telling must never stop the telling one: a write that fails is remembered,
warned of once, and tried again.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal

from trainer.errors import EXIT_PEER_LOST, EXIT_STOPPED
from trainer.run import atomic
from trainer.run.background import Background
from trainer.run.damage import DAMAGED

State = Literal["running", "completed", "preempted", "failed"]
HEARTBEAT_SECONDS = 2.0
# A chief's end that follows from another's -> the ends of all workers together that say no more.
_FOLLOWS: Mapping[int, tuple[int, ...]] = {
    EXIT_PEER_LOST: (EXIT_PEER_LOST, EXIT_STOPPED),
    EXIT_STOPPED: (EXIT_STOPPED,),
}


def close(path: str, exit_code: int, reason: str) -> None:
    """Writes the end of a run as it is known to who started its workers.

    That is so where the chief was killed before it could write one, and where it only lost sight of
    a worker that ended by itself, or was stopped on account of it. Any other end of the chief's
    stays.

    Args:
      path: status.json; nothing happens where there is none, or if it cannot be read or written.
      exit_code: of the whole run.
      reason: how it ended, in words.
    """
    with contextlib.suppress(*DAMAGED):
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
        written = content["exit_code"]
        follows = written in _FOLLOWS and exit_code not in _FOLLOWS[written]
        if content["state"] == "running" or follows:
            end = {"state": "failed", "exit_code": exit_code, "reason": reason}
            atomic.write_json(path, {**content, **end, "updated": _now()}, durable=False)


def next_generation(path: str) -> int:
    """Returns how many times a cluster has met for this run before, as status.json counts them."""
    try:
        with open(path, encoding="utf-8") as file:
            return int(json.load(file)["generation"]) + 1
    except DAMAGED:
        return 0  # the first, or nobody can say


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class Status:
    """Writes the file on every `update`, and `updated` again every two seconds.

    Args:
      path: status.json of the run directory.
      replicas: devices that train together.
      strategy: name of the strategy that was chosen.
      strategy_reason: why that one.
      workers: {"rank": int, "host": str, "pid": int} of each.
      generation: how many times a cluster has met for this run before (`next_generation`).
    """

    def __init__(
        self,
        path: str,
        *,
        replicas: int,
        strategy: str,
        strategy_reason: str = "",
        workers: list[dict[str, Any]],
        generation: int = 0,
    ) -> None:
        self._path = path
        self._content: dict[str, Any] = {
            "state": "running",
            "step": 0,
            "exit_code": None,
            "reason": None,
            "replicas": replicas,
            "strategy": strategy,
            "strategy_reason": strategy_reason,
            "generation": generation,
            "workers": workers,
        }
        self.problem: str | None = None
        # Until then, whoever cannot write here ends with the error that says so.
        self._begun = False
        self._warned = False
        self._lock = threading.Lock()
        self._background = Background("status", self._run)

    def update(
        self,
        state: State,
        step: int,
        *,
        exit_code: int | None = None,
        reason: str | None = None,
    ) -> None:
        """Replaces the file; never raises. `exit_code` and `reason` once the end is known."""
        with self._lock:
            self._begun |= state == "running"
            self._content |= {
                "state": state, "step": step, "exit_code": exit_code, "reason": reason,
            }  # fmt: skip
            self._write()

    def note(self, step: int) -> None:
        """Remembers the step for the next heartbeat; cheap enough for every call."""
        self._content["step"] = step
        self._begun = True

    def start(self) -> None:
        """Writes now, and keeps `updated` fresh until `stop`."""
        self._beat()
        self._background.start()

    def stop(self) -> None:
        """Ends the heartbeat; the last state stays in the file."""
        self._background.stop()

    def _run(self) -> None:
        while not self._background.ended.wait(HEARTBEAT_SECONDS):
            self._beat()

    def _beat(self) -> None:
        with self._lock:
            self._write()

    def _write(self) -> None:
        try:
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            atomic.write_json(self._path, {**self._content, "updated": _now()}, durable=False)
            self.problem = None
        except OSError as error:
            self.problem = f"{self._path} cannot be written: {error.strerror}"
            if self._begun and not self._warned:
                self._warned = True
                more = "; training goes on" if self._content["state"] == "running" else ""
                with contextlib.suppress(OSError, ValueError):
                    print(f"castell: warning: {self.problem}{more}", file=sys.stderr)
