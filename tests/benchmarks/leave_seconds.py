"""How long the others stay after one worker of three is killed, stopped, or never came.

The ratio of these benches is seconds, an upper bound: the slowest of the others, from the signal
(or the first start) to its end, in real training runs.
"""

from __future__ import annotations

import signal
import statistics
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.benchmarks.harness import RUNS, Result
from tests.datasets import make_dataset
from tests.runs import flags, run_main
from tests.workers import Worker, processes, tf_configs
from trainer.data.dataset import Dataset

WORKERS = 3
HEARTBEAT_SECONDS = 3
DEADLINE_SECONDS = 3
KILL_SECONDS = 3.0
STOP_SECONDS = HEARTBEAT_SECONDS + 5.0
ABSENT_SECONDS = DEADLINE_SECONDS + 2.0


def bench() -> Iterator[Result]:
    """Yields one result a kind of loss; the lost one is the chief in every other run."""
    with tempfile.TemporaryDirectory() as root:
        dataset = make_dataset(Path(root) / "data", rows=4000, shards=6)
        for name, number, limit in (
            ("kill", signal.SIGKILL, KILL_SECONDS),
            ("stop", signal.SIGSTOP, STOP_SECONDS),
        ):
            seconds = [
                _lost(dataset, Path(root) / f"{name}-{run}", number, victim=run % 2)
                for run in range(RUNS)
            ]
            yield _result(name, seconds, limit)
        seconds = [_absent(dataset, Path(root) / f"absent-{run}", run % 2) for run in range(RUNS)]
        yield _result("absent", seconds, ABSENT_SECONDS)


def _result(name: str, seconds: list[float], limit: float) -> Result:
    extra = {"heartbeat_seconds": HEARTBEAT_SECONDS, "deadline_seconds": DEADLINE_SECONDS}
    median = round(statistics.median(seconds), 2)
    runs = tuple(round(value, 2) for value in seconds)
    return Result(f"leave_seconds_{name}", median, "the loss", limit, runs, True, extra)


def _lost(dataset: Dataset, root: Path, number: signal.Signals, victim: int) -> float:
    """Sends the signal to one worker once the run trains."""
    root.mkdir()
    argv = flags(
        dataset, root / "run", steps=1_000_000, global_batch=60, steps_per_call=1, log_every=1,
        heartbeat_timeout_seconds=HEARTBEAT_SECONDS,
    )  # fmt: skip
    with processes() as start:
        workers: list[Worker] = [
            start(run_main, argv, env=env, log=root / f"{rank}.log")
            for rank, env in enumerate(tf_configs(WORKERS))
        ]
        metrics = root / "run" / "metrics.jsonl"
        workers[0].wait_for(lambda: metrics.exists() and metrics.stat().st_size > 0)
        workers[victim].send(number)
        return _until_gone([w for w in workers if w is not workers[victim]])


def _absent(dataset: Dataset, root: Path, missing: int) -> float:
    """Starts all workers but one; the clock runs once they look for each other."""
    root.mkdir()
    argv = flags(dataset, root / "run", global_batch=60, startup_deadline_seconds=DEADLINE_SECONDS)
    with processes() as start:
        workers = [
            start(run_main, argv, env=env, log=root / f"{rank}.log")
            for rank, env in enumerate(tf_configs(WORKERS))
            if rank != missing
        ]
        for worker in workers:
            worker.wait_for(partial(_has_watch, worker.pid))
        return _until_gone(workers)


def _has_watch(pid: int) -> bool:
    """Returns whether the lifeline's process is there: the last thing before the meeting."""
    return bool(Path(f"/proc/{pid}/task/{pid}/children").read_text())


def _until_gone(workers: list[Worker]) -> float:
    began = time.perf_counter()
    for worker in workers:
        worker.expect(138)
    return time.perf_counter() - began
