"""Rows per CPU-second of `castell shard` (blocks) against the loop that tutorials show.

The loop: `csv`, a tf.train.Example a row, `TFRecordWriter`. It neither infers types, shuffles,
splits nor takes statistics; ours does, and is measured with all of it.
"""

import csv
import random
import tempfile
from functools import partial
from pathlib import Path

import tensorflow as tf

from components.shard_data.options import ShardOptions
from components.shard_data.shard import shard
from tests.benchmarks.harness import Result, compare

ROWS = 60_000
FLOATS, INTS, TEXTS = 4, 4, 4
TARGET = 5.0


def bench() -> Result:
    with tempfile.TemporaryDirectory() as directory:
        table = Path(directory, "table.csv")
        _write(table)
        return compare(
            "shard_rows",
            ours=partial(_ours, table, Path(directory)),
            other=partial(_loop, table, Path(directory)),
            against="csv + tf.train.Example + TFRecordWriter, row by row",
            target=TARGET,
        )


def _write(table: Path) -> None:
    draw = random.Random(0)
    words = [f"word{i}" for i in range(200)]
    with table.open("w", newline="") as file:
        writer = csv.writer(file)
        names = [f"f{i}" for i in range(FLOATS)] + [f"i{i}" for i in range(INTS)]
        writer.writerow([*names, *(f"t{i}" for i in range(TEXTS)), "y"])
        for _ in range(ROWS):
            floats = [f"{draw.gauss(0, 1):.5f}" for _ in range(FLOATS)]
            ints = [draw.randrange(10_000) for _ in range(INTS)]
            texts = [draw.choice(words) for _ in range(TEXTS)]
            writer.writerow([*floats, *ints, *texts, draw.randrange(2)])


def _ours(table: Path, directory: Path) -> None:
    output = tempfile.mkdtemp(dir=directory)
    options = {"sources": [str(table)], "output": f"{output}/d", "label": "y"}
    shard(ShardOptions.parse(options), lambda line: None)


def _loop(table: Path, directory: Path) -> None:
    def feature(text: str) -> tf.train.Feature:
        if text.lstrip("-").isdigit():
            return tf.train.Feature(int64_list=tf.train.Int64List(value=[int(text)]))
        try:
            return tf.train.Feature(float_list=tf.train.FloatList(value=[float(text)]))
        except ValueError:
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=[text.encode()]))

    output = Path(tempfile.mkdtemp(dir=directory), "rows.tfrecord")
    with table.open(newline="") as file, tf.io.TFRecordWriter(str(output)) as writer:
        for row in csv.DictReader(file):
            features = tf.train.Features(feature={k: feature(v) for k, v in row.items()})
            writer.write(tf.train.Example(features=features).SerializeToString())
