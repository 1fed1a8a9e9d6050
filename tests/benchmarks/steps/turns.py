"""A side's end of the race: it stands still between turns, and says how long each one took."""

import os
import sys
import time
from typing import TextIO


class Turns:
    """Only the chief looks at the clock; the other workers wait for it in their collectives."""

    def __init__(self, chief: bool, report: TextIO) -> None:
        self._chief = chief
        self._report = report
        self._began: float | None = None

    def boundary(self) -> None:
        """Ends a turn (if one has begun) and waits for the next; called every `Case.turn` steps."""
        now = time.perf_counter()
        if not self._chief:
            return
        if self._began is not None:
            print(now - self._began, file=self._report, flush=True)
        if not sys.stdin.readline():
            os._exit(0)
        self._began = time.perf_counter()
