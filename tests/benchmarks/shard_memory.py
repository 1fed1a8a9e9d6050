"""Peak memory of `castell shard` on the flights many times over, against what `--memory` allows."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.harness import Result, result
from tests.benchmarks.sharding import flights

TIMES = 20
MEMORY = 256 << 20
RUNS = 3
_RUN = """
import sys
from components.shard_data.options import ShardOptions
from components.shard_data.shard import shard
shard(ShardOptions.parse({"sources": [sys.argv[1]], "output": sys.argv[2], "label": "arr_delay",
                          "drop_missing_label": True, "processes": 1, "memory": int(sys.argv[3])}))
(peak,) = (line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(peak.split()[1]) * 1024)
"""


def bench() -> Result:
    with tempfile.TemporaryDirectory() as directory:
        source = flights.write_csv(flights.table(), Path(directory, "flights.csv"), TIMES)
        pairs = [
            (float(_peak(source, Path(directory, f"out{i}"))), float(MEMORY)) for i in range(RUNS)
        ]
        return result(
            "shard_memory_peak",
            pairs,
            against=f"--memory {MEMORY >> 20}MiB",
            target=1.0,
            upper_bound=True,
            extra={"source_megabytes": round(os.path.getsize(source) / 1e6)},
        )


def _peak(source: Path, output: Path) -> int:
    command = [sys.executable, "-c", _RUN, str(source), str(output), str(MEMORY)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(ended.stdout.split()[-1])
