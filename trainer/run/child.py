"""A child process whose end is ours: it gets our SIGTERM, and does not outlive us."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_PR_SET_PDEATHSIG = 1

Started = Callable[[subprocess.Popen[bytes]], None]


@contextmanager
def stops_passed_on() -> Iterator[Started]:
    """Sends SIGTERM on to the child that the yielded function is told of.

    Also one that comes before the child is there. SIGINT is only outlived: a terminal sends it to
    the child as well. Main thread only.
    """
    children: list[subprocess.Popen[bytes]] = []
    early: list[int] = []

    def pass_on(signum: int, frame: FrameType | None) -> None:
        for child in children:
            child.send_signal(signum)
        if not children:
            early.append(signum)

    def started(child: subprocess.Popen[bytes]) -> None:
        children.append(child)
        for signum in early:
            child.send_signal(signum)

    handlers = {signal.SIGTERM: pass_on, signal.SIGINT: lambda signum, frame: None}
    before = {signum: signal.signal(signum, handler) for signum, handler in handlers.items()}
    try:
        yield started
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


def die_with_parent() -> None:
    """Has the kernel kill this process when the one that started it ends (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
