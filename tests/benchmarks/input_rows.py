"""Rows per CPU-second into the step: lanes over blocks against the pipeline that tutorials show.

Theirs: interleave over files of a tf.train.Example a row, shuffle(4096), batch, parse_example; and,
as fast as rows can be read, file after file in batches of 1,024 without any shuffle, where neither
side preprocesses.
Ours: super-batches of blocks, lanes and window shuffle. The same rows (4 float, 4 integer, 4 string
columns), and the tabular task's preprocessing on both sides. Neither trains anything; what it takes
to start (tracing) is taken off both.
"""

import csv
import random
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median

import tensorflow as tf

from components.shard_data.options import ShardOptions
from components.shard_data.shard import shard
from tests.benchmarks.harness import Result, cpu_seconds, in_turns, result
from trainer.data.dataset import Dataset
from trainer.data.input import training_batches
from trainer.data.lanes import plan
from trainer.tasks.tabular.task import Tabular

ROWS, PASSES = 200_000, 5
BATCH, STEPS_PER_CALL, SHARDS = 256, 50, 8
STEPS = ROWS * PASSES // BATCH // STEPS_PER_CALL * STEPS_PER_CALL
COLUMNS = 4  # of each kind
WORDS = 200
SHUFFLED = 4096
LARGE_BATCH = 1024
TARGET = 5.0
Preprocess = Callable[[dict[str, tf.Tensor]], dict[str, tf.Tensor]]


def bench() -> Iterator[Result]:
    with tempfile.TemporaryDirectory() as directory:
        table = Path(directory, "table.csv")
        _write(table)
        for layout in ("blocks", "rows"):
            options = {
                "sources": [str(table)], "output": f"{directory}/{layout}", "label": "y",
                "layout": layout, "shards": SHARDS, "split": {"train": 1.0},
            }  # fmt: skip
            shard(ShardOptions.parse(options), lambda line: None)
        sides = {
            "input_rows": (ours, "interleave + shuffle(4096) + batch + parse_example", theirs),
            "input_rows_read": (ours_read, "batch(1024) + parse_example", theirs_read),
        }
        for name, (mine, against, other) in sides.items():
            pairs = in_turns(
                partial(mine, f"{directory}/blocks"), partial(other, f"{directory}/rows"), _seconds
            )
            yield result(
                name,
                pairs,
                against=against,
                target=TARGET,
                extra={"rows_per_cpu_second": round(STEPS * BATCH / median(o for o, _ in pairs))},
            )


def _seconds(work: Callable[..., object]) -> float:
    """Returns the CPU seconds of STEPS steps, beyond what the first ones take."""
    first = cpu_seconds(partial(work, STEPS_PER_CALL))
    return cpu_seconds(partial(work, STEPS_PER_CALL + STEPS)) - first


def _write(table: Path) -> None:
    draw = random.Random(0)
    with table.open("w", newline="") as file:
        writer = csv.writer(file)
        kinds = [f"{kind}{i}" for kind in "fis" for i in range(COLUMNS)]
        writer.writerow([*kinds, "y"])
        for _ in range(ROWS):
            floats = [f"{draw.gauss(0, 1):.5f}" for _ in range(COLUMNS)]
            ints = [draw.randrange(10_000) for _ in range(COLUMNS)]
            words = [f"word{draw.randrange(WORDS)}" for _ in range(COLUMNS)]
            writer.writerow([*floats, *ints, *words, draw.randrange(2)])


def ours(data: str, steps: int) -> None:
    task = Tabular()
    task.build(Dataset.open(data))
    _feed(data, steps, task, task.preprocess)


def ours_read(data: str, steps: int) -> None:
    _feed(data, steps, Tabular(), lambda features: features)


def _feed(data: str, steps: int, task: Tabular, preprocess: Preprocess) -> None:
    dataset = Dataset.open(data)
    lanes = plan(
        [s.rows for s in dataset.split("train").shards], global_batch=BATCH, replicas=1
    )  # fmt: skip
    feed = training_batches(
        task.columns(dataset), "train", preprocess, lanes,
        replica=0, replicas=1, step=0, last=steps, steps=STEPS_PER_CALL,
    )  # fmt: skip
    rows = sum(label.shape[0] * label.shape[1] for _, label, _ in feed)
    assert rows == steps * BATCH, rows


def theirs(data: str, steps: int) -> None:
    batches = (
        tf.data.Dataset.from_tensor_slices(_files(data))
        .interleave(tf.data.TFRecordDataset, cycle_length=SHARDS)
        .repeat()
        .shuffle(SHUFFLED)
        .batch(BATCH, drop_remainder=True)
        .map(_parser(data, preprocess=True))
        .take(steps)
        .prefetch(2)
    )
    _run(batches, steps * BATCH)


def theirs_read(data: str, steps: int) -> None:
    batches = (
        tf.data.TFRecordDataset(_files(data))
        .repeat()
        .batch(LARGE_BATCH, drop_remainder=True)
        .map(_parser(data, preprocess=False))
        .take(steps * BATCH // LARGE_BATCH)
        .prefetch(2)
    )
    _run(batches, steps * BATCH // LARGE_BATCH * LARGE_BATCH)


def _files(data: str) -> list[str]:
    return sorted(map(str, Path(data, "train").glob("*")))


def _parser(
    data: str, *, preprocess: bool
) -> Callable[[tf.Tensor], tuple[dict[str, tf.Tensor], tf.Tensor]]:
    dataset = Dataset.open(data)
    task = Tabular()
    task.build(dataset)
    kinds = {"float32": tf.float32, "int64": tf.int64, "string": tf.string}
    spec = {
        f.name: tf.io.FixedLenFeature([], kinds[f.dtype]) for f in dataset.manifest.features
    }  # fmt: skip

    def parse(records: tf.Tensor) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        features = tf.io.parse_example(records, spec)
        label = tf.cast(features.pop("y"), tf.float32)
        return task.preprocess(features) if preprocess else features, label

    return parse


def _run(batches: tf.data.Dataset, rows: int) -> None:
    found = batches.reduce(0, lambda n, batch: n + tf.shape(batch[1])[0])
    assert int(found) == rows, found
