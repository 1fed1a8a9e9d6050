"""Steps as processes of this environment: no container, no new virtual environment.

kfp.local starts a step as `sh`, which starts Python, and passes no signal on: left alone, a
training would outlive the command that started it.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Subprocess:
    """kfp.local's SubprocessRunner."""

    def make(self) -> Any:
        """See `Runner`."""
        from kfp import local

        return local.SubprocessRunner(use_venv=False)

    def stop(self) -> bool:
        """See `Runner`."""
        shells = _children(os.getpid())
        for pid in (*(child for shell in shells for child in _children(shell)), *shells):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        return bool(shells)

    def close(self) -> None:
        """See `Runner`: nothing is left."""


def runner(arguments: Mapping[str, Any]) -> Subprocess:
    """Returns the runner; it needs nothing."""
    return Subprocess()


def _children(pid: int) -> list[int]:
    """Returns the processes that `pid` started, from any of its threads (Linux; else none)."""
    found: list[int] = []
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += map(int, listed.read_text().split())
    return found
