"""Pairs: ours and the other's in turns, so that a busy machine slows both; medians decide."""

import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

RUNS = 5

Work = Callable[[], object]
Pairs = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Result:
    """One claim: ours against the other's.

    ratio: above 1 = ours is better; of an upper bound (`stall_share`, `memory_growth`: the name
    says it) ours / the other's, at most `target`. runs: the ratio of each pair. extra: figures
    that are reported beside.
    """

    bench: str
    ratio: float
    against: str
    target: float
    runs: tuple[float, ...]
    upper_bound: bool = False
    extra: Mapping[str, object] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.ratio <= self.target if self.upper_bound else self.ratio >= self.target

    def line(self) -> dict[str, object]:
        """Returns what `make bench` prints of it."""
        return {
            "bench": self.bench,
            "ratio": self.ratio,
            "against": self.against,
            "target": self.target,
            "ok": self.ok,
            "runs": list(self.runs),
            **self.extra,
        }


def result(
    bench: str,
    pairs: Pairs,
    *,
    against: str,
    target: float,
    upper_bound: bool = False,
    extra: Mapping[str, object] | None = None,
) -> Result:
    """Returns the median over pairs of what ours and the other's took (seconds, bytes, …)."""
    ratios = [o / t if upper_bound else t / o for o, t in pairs]
    runs = tuple(round(ratio, 3) for ratio in ratios)
    median = round(statistics.median(ratios), 3)
    return Result(bench, median, against, target, runs, upper_bound, extra or {})


def compare(
    bench: str,
    *,
    ours: Work,
    other: Work,
    against: str,
    target: float,
    runs: int = RUNS,
    upper_bound: bool = False,
) -> Result:
    """Compares CPU seconds, each call in a process forked from this one (imports are done here)."""
    pairs = in_turns(ours, other, cpu_seconds, runs)
    return result(bench, pairs, against=against, target=target, upper_bound=upper_bound)


def in_turns(
    ours: Work, other: Work, measure: Callable[[Work], Any], runs: int = RUNS
) -> list[tuple[Any, Any]]:
    """Returns what `measure` says of (ours, other), who goes first changing from pair to pair."""
    pairs = []
    for turn in range(runs):
        order = (ours, other) if turn % 2 == 0 else (other, ours)
        measured = {work: measure(work) for work in order}
        pairs.append((measured[ours], measured[other]))
    return pairs


def wall_seconds(work: Work) -> float:
    """Returns how long `work` takes in this process."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def cpu_seconds(work: Work) -> float:
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


def _measured(work: Work, sender: Any) -> None:
    before = _spent()
    work()
    sender.send(_spent() - before)


def _spent() -> float:
    times = os.times()
    return time.process_time() + times.children_user + times.children_system
