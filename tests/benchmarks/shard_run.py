"""CPU-seconds of a whole `castell shard` against what TFX's CsvExampleGen does.

Theirs is written here as an Apache Beam pipeline on the Direct runner: CSV lines → tf.Example,
split by a hash, gzip TFRecords. Ours reads Parquet, shuffles globally, splits, takes statistics,
and keeps to one process.
"""

from __future__ import annotations

import hashlib
import importlib
import shutil
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import tensorflow as tf

from tests.benchmarks.harness import Result, compare
from tests.benchmarks.sharding import flights

TARGET = 30.0
RUNS = 3  # theirs takes more than a minute
BUCKETS, TRAIN_BUCKETS = 3, 2


def bench() -> Result:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        table = flights.table()
        text = flights.write_csv(table, root / "flights.csv")
        typed = flights.write_parquet(table, root / "flights.parquet")
        return compare(
            "shard_run",
            ours=partial(_ours, typed, root / "ours"),
            other=partial(_theirs, text, root / "theirs", table.column_names),
            against="CSV lines → tf.Example, split by hash, gzip TFRecord, Beam's Direct runner",
            target=TARGET,
            runs=RUNS,
        )


def _ours(source: Path, output: Path) -> None:
    shutil.rmtree(output, ignore_errors=True)
    flights.sharded(source, output)


def _example(line: str, names: list[str]) -> bytes:
    example = tf.train.Example()
    for name, text in zip(names, line.split(","), strict=True):
        feature = example.features.feature[name]
        if not text:
            continue
        try:
            feature.int64_list.value.append(int(text))
        except ValueError:
            feature.bytes_list.value.append(text.encode())
    return bytes(example.SerializeToString())


def _bucket(record: bytes, count: int) -> int:
    number = int(hashlib.sha256(record).hexdigest(), 16) % BUCKETS
    return 0 if number < TRAIN_BUCKETS else 1


def _theirs(source: Path, output: Path, names: list[str]) -> None:
    beam: Any = importlib.import_module("apache_beam")
    with beam.Pipeline() as pipeline:
        examples = (
            pipeline
            | beam.io.ReadFromText(str(source), skip_header_lines=1)
            | beam.Map(_example, names=names)
        )
        parts = examples | beam.Partition(_bucket, 2)
        for name, part in zip(("train", "eval"), parts, strict=True):
            write = beam.io.WriteToTFRecord(f"{output}/{name}", file_name_suffix=".gz")
            part | f"shuffle {name}" >> beam.Reshuffle() | f"write {name}" >> write
