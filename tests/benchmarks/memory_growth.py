"""Resident memory of two workers over 10,000 steps against that after the first 1,000.

A whole run as a user starts it: shards, metrics, checkpoints and evaluations on the way. Compared
is the largest of the last thousand steps with the largest of the thousand after the first, so that
both hold a checkpoint and an evaluation; `runs` has one ratio a worker, the larger one counts.
"""

import json
import tempfile
import time
from pathlib import Path

from tests.benchmarks.harness import Result
from tests.datasets import make_dataset
from tests.runs import cluster, flags
from tests.workers import Worker, processes

STEPS, SETTLED_STEPS = 10_000, 1_000
TARGET = 1.05
SAMPLE_SECONDS = 0.1
PATIENCE_SECONDS = 1800


def bench() -> Result:
    with tempfile.TemporaryDirectory() as name, processes() as start:
        output = Path(name, "run")
        dataset = make_dataset(Path(name, "data"), rows=4000, shards=8)
        options = flags(
            dataset, output, steps=STEPS, checkpoint_every=SETTLED_STEPS, log_every=100,
            eval_every=SETTLED_STEPS, steps_per_call=50, heartbeat_timeout_seconds=60,
        )  # fmt: skip
        workers = cluster(start, options, Path(name, "logs"))
        samples = _watch(workers, output / "metrics.jsonl")
        for worker in workers:
            worker.expect(0)
    first, last = [
        [max(each) for each in zip(*(s for at, s in samples if low < at <= high), strict=True)]
        for low, high in ((SETTLED_STEPS, 2 * SETTLED_STEPS), (STEPS - SETTLED_STEPS, STEPS))
    ]
    runs = tuple(round(end / begin, 3) for begin, end in zip(first, last, strict=True))
    return Result(
        "memory_growth", max(runs), f"after {SETTLED_STEPS:,} steps", TARGET, runs,
        upper_bound=True, extra={"megabytes": [round(size / 1e6) for size in last]},
    )  # fmt: skip


def _watch(workers: list[Worker], metrics: Path) -> list[tuple[int, list[int]]]:
    """Returns (step, bytes of each worker) until the last step is logged."""
    samples: list[tuple[int, list[int]]] = []
    deadline = time.monotonic() + PATIENCE_SECONDS
    step = 0
    while step < STEPS:
        step = _last_step(metrics)
        try:
            samples.append((step, [_resident(worker.pid) for worker in workers]))
        except FileNotFoundError:
            break
        if time.monotonic() > deadline:
            raise TimeoutError(f"only {step} steps in {PATIENCE_SECONDS} s")
        time.sleep(SAMPLE_SECONDS)
    return samples


def _last_step(metrics: Path) -> int:
    lines = metrics.read_text().splitlines() if metrics.exists() else []
    return int(json.loads(lines[-1])["step"]) if lines else 0


def _resident(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0
