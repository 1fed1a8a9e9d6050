"""What a person who waits sees: files as they are read, and on long work how fast and how far."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

Report = Callable[[str], None]

# A line every so many seconds, and none before the first of them is over.
_EVERY_SECONDS = 5.0
_MEGA = 1e6


@dataclass
class Progress:
    """Counts the rows and bytes of one phase of so many jobs."""

    what: str
    jobs: int
    report: Report
    _began: float = field(default_factory=time.monotonic)
    _told: float = field(default_factory=time.monotonic)
    _done: int = 0
    _bytes: int = 0
    _rows: int = 0

    def add(self, size: int, rows: int, where: str) -> None:
        """Counts a job that is done; says so now and then."""
        self._done += 1
        self._bytes += size
        self._rows += rows
        now = time.monotonic()
        if now - self._told < _EVERY_SECONDS:
            return
        self._told = now
        seconds = now - self._began
        share = self._done / self.jobs
        self.report(
            f"{self.what} {share:.0%}, {where}: {self._rows:,} rows, "
            f"{self._rows / seconds:,.0f} rows/s, {self._bytes / seconds / _MEGA:,.0f} MB/s, "
            f"about {_span(seconds * (1 - share) / share)} left"
        )


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
