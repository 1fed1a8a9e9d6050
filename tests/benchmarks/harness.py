"""Pairs: ours and the other's in turns, so that a busy machine slows both; medians decide."""

import multiprocessing
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

RUNS = 5


@dataclass(frozen=True)
class Result:
    """ratio: ours against the other's, above 1 = ours is better. runs: the ratio of each pair."""

    bench: str
    ratio: float
    against: str
    target: float
    runs: tuple[float, ...]

    @property
    def ok(self) -> bool:
        return self.ratio >= self.target


def compare(
    bench: str,
    *,
    ours: Callable[[], object],
    other: Callable[[], object],
    against: str,
    target: float,
    runs: int = RUNS,
) -> Result:
    """Compares CPU seconds, each call in a process forked from this one (imports are done here)."""
    pairs = []
    for turn in range(runs):
        order = (ours, other) if turn % 2 == 0 else (other, ours)
        seconds = {work: cpu_seconds(work) for work in order}
        pairs.append((seconds[ours], seconds[other]))
    ratio = statistics.median(o for _, o in pairs) / statistics.median(o for o, _ in pairs)
    each = tuple(round(theirs / mine, 3) for mine, theirs in pairs)
    return Result(bench, round(ratio, 3), against, target, each)


def cpu_seconds(work: Callable[[], object]) -> float:
    """Returns user + system seconds of `work`, run in a forked process, its children included."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_measured, args=(work, sender))
    process.start()
    sender.close()
    try:
        return float(receiver.recv())
    finally:
        process.join()


def _measured(work: Callable[[], object], sender: Any) -> None:
    before = _spent()
    work()
    sender.send(_spent() - before)


def _spent() -> float:
    times = os.times()
    return time.process_time() + times.children_user + times.children_system
