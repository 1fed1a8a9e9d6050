"""When the next pod of a Job may come: the controller's record of failures.

After kubernetes/kubernetes pkg/controller/job/backoff_utils.go. *Every* failed pod lengthens the
wait, also one that podFailurePolicy ignores, and each pod by itself: three workers that leave with
138 at once are three failures, a wait of 10 s * 2^2 before any of the three comes again. A success
starts over. With backoffLimitPerIndex each index has a wait of its own.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from tests.doubles.kubernetes.timing import Timing


@dataclass
class Record:
    """Failures since the last success; `ignored` are those that no limit counts."""

    counted: int = 0
    ignored: int = 0
    last: float = 0.0

    def fail(self, *, counts: bool) -> None:
        if counts:
            self.counted += 1
        else:
            self.ignored += 1
        self.last = time.monotonic()

    def remaining(self, timing: Timing) -> float:
        """Seconds until a pod may come."""
        failures = self.counted + self.ignored
        if not failures:
            return 0.0
        wait = min(timing.pod_backoff * 2.0 ** (failures - 1), timing.pod_backoff_longest)
        return max(0.0, wait - (time.monotonic() - self.last))
