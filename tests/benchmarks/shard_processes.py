"""Seconds of `castell shard` with two processes against one, on the flights many times over."""

from __future__ import annotations

import os
import shutil
import tempfile
from functools import partial
from pathlib import Path

from tests.benchmarks.harness import Result, in_turns, result, wall_seconds
from tests.benchmarks.sharding import flights

TIMES = 20
TARGET = 1.7


def bench() -> Result:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        source = flights.write_csv(flights.table(), root / "flights.csv", TIMES)
        run = partial(_run, source, root / "out")
        pairs = in_turns(partial(run, 2), partial(run, 1), wall_seconds)
        megabytes = source.stat().st_size / 1e6
        return result(
            "shard_processes",
            pairs,
            against="one process",
            target=TARGET,
            extra={
                "megabytes_per_second": round(megabytes / min(o for o, _ in pairs)),
                "cores": os.cpu_count(),
            },
        )


def _run(source: Path, output: Path, processes: int) -> None:
    shutil.rmtree(output, ignore_errors=True)
    flights.sharded(source, output, processes=processes)
