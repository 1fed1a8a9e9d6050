"""Steps as processes of this environment: no container, no new virtual environment.

kfp.local starts a step as `sh`. Ours are Python then (`components.image`); another's stay the child
of that shell, which passes no signal on: left alone, they would outlive the command.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

_SHELLS = ("sh", "dash", "bash", "busybox")


class Subprocess:
    """kfp.local's SubprocessRunner."""

    def __init__(self) -> None:
        self._told = False

    def make(self) -> Any:
        """See `Runner`."""
        from kfp import local

        return local.SubprocessRunner(use_venv=False)

    def stop(self) -> bool:
        """See `Runner`."""
        self._told = True
        steps = _children(os.getpid())
        behind = [child for step in steps if _is_shell(step) for child in _children(step)]
        for pid in (*behind, *steps):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        return bool(steps)

    def close(self) -> None:
        """See `Runner`: a step may have begun just when the signal came."""
        if self._told:
            self.stop()


def runner(arguments: Mapping[str, Any], images: Iterable[str], workdir: Path) -> Subprocess:
    """Returns the runner; it needs nothing."""
    return Subprocess()


def _is_shell(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip() in _SHELLS
    return False


def _children(pid: int) -> list[int]:
    """Returns the processes that `pid` started, from any of its threads (Linux; else none)."""
    found: list[int] = []
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += map(int, listed.read_text().split())
    return found
