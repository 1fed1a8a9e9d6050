"""SIGTERM and SIGINT while a local pipeline runs: the step is told, and ends in its own way.

kfp.local starts a step as `sh`, which starts Python, and passes nothing on: left alone, a training
would outlive the command that started it.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType


@contextlib.contextmanager
def stops_passed_on() -> Iterator[list[int]]:
    """Sends SIGTERM to the step when this process is told to stop; yields the signals seen.

    Between two steps it raises KeyboardInterrupt instead.
    """
    seen: list[int] = []

    def pass_on(signum: int, frame: FrameType | None) -> None:
        seen.append(signum)
        shells = _children(os.getpid())
        if not shells:
            raise KeyboardInterrupt  # between two steps: the next one must not begin
        for pid in (*(child for shell in shells for child in _children(shell)), *shells):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    before = {n: signal.signal(n, pass_on) for n in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield seen
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


def _children(pid: int) -> list[int]:
    """Returns the processes that `pid` started, from any of its threads (Linux; else none)."""
    found: list[int] = []
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += map(int, listed.read_text().split())
    return found
