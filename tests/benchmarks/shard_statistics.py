"""CPU-seconds of the figures of all flights, against TensorFlow Data Validation.

TFDV is not installed here (its wheels need a newer C library than most machines have), so its side
is a recorded figure: 0.6 CPU-seconds for the same table on a machine where ours took 0.2.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

from components.shard_data import figures
from components.shard_data.figures.reading import ranges_of
from tests.benchmarks.harness import RUNS, Result, cpu_seconds, result
from tests.benchmarks.sharding import flights
from trainer.data.blocks import Column, concat
from trainer.data.dataset import Dataset
from trainer.data.rows import read_rows

RECORDED_SECONDS = 0.6
TARGET = 2.0


def bench() -> Result:
    with tempfile.TemporaryDirectory() as directory:
        source = flights.write_parquet(flights.table(), Path(directory, "flights.parquet"))
        flights.sharded(source, Path(directory, "out"), split="train=1")
        dataset = Dataset.open(f"{directory}/out")
        block = concat(list(read_rows(dataset, "train")))
        columns = {f.name: block.column(f) for f in dataset.manifest.features}
        work = partial(_figures, dataset, columns)
        pairs = [(cpu_seconds(work), RECORDED_SECONDS) for _ in range(RUNS)]
        return result(
            "shard_statistics",
            pairs,
            against=f"tensorflow-data-validation, recorded: {RECORDED_SECONDS} CPU-seconds",
            target=TARGET,
        )


def _figures(dataset: Dataset, columns: dict[str, Column]) -> None:
    features = dataset.manifest.features
    ranges = ranges_of(dataset.statistics)
    state = figures.collect(features, columns, dataset.split("train").rows, ranges)
    figures.merge(features, [state])
