"""CPU-seconds from columns to shard files, in both layouts, against tfx_bsl and TFRecordWriter.

Ours starts where the last phase does, at settled arrow columns of a bucket, and ends with the file:
order, encode, frame, hash, write. Statistics are not taken on either side. `blocks` is also held
against writing the same bytes with one call.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import tensorflow as tf
from tfx_bsl.coders import example_coder

from components.shard_data.encoding import columns, files, records
from components.shard_data.findings import Findings
from components.shard_data.options import ShardOptions
from components.shard_data.types import cast, typed
from components.shard_data.types.decide import decide
from components.shard_data.types.look import Place
from components.shard_data.types.profile import LARGEST_DICTIONARY, Sum
from tests.benchmarks.harness import Result, compare
from tests.benchmarks.sharding import flights
from trainer.data.blocks import pack, plan_storage
from trainer.data.manifest import Feature, Layout

BLOCK_ROWS = 1024
ROWS_TARGET, BLOCKS_TARGET = 2.5, 8.0
# Of the speed of writing the bytes alone.
RAW_TARGET = 0.5
THEIRS = "tfx_bsl RecordBatchToExamplesEncoder + TFRecordWriter"
_OPTIONS = ShardOptions.parse({"sources": ["s"], "output": "o", "label": flights.LABEL})


def bench() -> Iterator[Result]:
    with tempfile.TemporaryDirectory() as directory:
        table = flights.table()
        features, settled = _settled(table)
        batch = _batch(table)
        root = Path(directory)
        theirs = partial(_theirs, batch, root)
        targets: dict[Layout, float] = {"rows": ROWS_TARGET, "blocks": BLOCKS_TARGET}
        for layout, target in targets.items():
            yield compare(
                f"shard_encoding_{layout}",
                ours=partial(_ours, features, settled, layout, root),
                other=theirs,
                against=THEIRS,
                target=target,
            )
        _ours(features, settled, "blocks", root)
        whole = (root / "blocks").read_bytes()
        yield compare(
            "shard_encoding_blocks_raw",
            ours=partial(_ours, features, settled, "blocks", root),
            other=partial(_raw, whole, root),
            against="writing the same bytes",
            target=RAW_TARGET,
        )


def _settled(table: pa.Table) -> tuple[tuple[Feature, ...], dict[str, pa.Array]]:
    features, settled = [], {}
    for name in table.column_names:
        read = typed.settle(name, table.column(name), _OPTIONS, Place(0, "f"), LARGEST_DICTIONARY)
        total = Sum(name, LARGEST_DICTIONARY)
        total.add(read.profile)
        plan = decide(name, total.total(), _OPTIONS, lambda mark: "f", Findings())
        if plan is not None:
            features.append(plan.feature(nullable=bool(table.column(name).null_count)))
            settled[name] = cast.settle(plan, read.array, _OPTIONS).array
    return tuple(features), settled


def _ours(
    features: tuple[Feature, ...], settled: Mapping[str, pa.Array], layout: Layout, root: Path
) -> None:
    rows = len(next(iter(settled.values())))
    planned = plan_storage(features)
    found = {f.name: columns.of_arrow(f, settled[f.name]) for f in planned}
    order = np.random.default_rng(0).permutation(rows)
    block = pack(planned, found, np.arange(rows)).take(order)
    files.write(root, layout, rows, records.records(planned, block, layout, BLOCK_ROWS))


def _batch(table: pa.Table) -> pa.RecordBatch:
    """The encoder takes lists of int64, float32 or bytes."""
    arrays = []
    for column in table.columns:
        kind = column.type
        flat = pa.int64() if pa.types.is_integer(kind) else pa.float32()
        flat = pa.binary() if pa.types.is_string(kind) else flat
        one = column.combine_chunks().cast(flat)
        one = one.chunk(0) if isinstance(one, pa.ChunkedArray) else one
        valid = one.is_valid().to_numpy(zero_copy_only=False)
        offsets = np.concatenate(([0], np.cumsum(valid))).astype(np.int32)
        arrays.append(pa.ListArray.from_arrays(pa.array(offsets), one.drop_null()))
    return pa.record_batch(arrays, names=table.column_names)


def _theirs(batch: pa.RecordBatch, root: Path) -> None:
    encoder = example_coder.RecordBatchToExamplesEncoder()
    with tf.io.TFRecordWriter(str(root / "theirs")) as writer:
        for record in encoder.encode(batch):
            writer.write(record)


def _raw(whole: bytes, root: Path) -> None:
    with (root / "raw").open("wb") as file:
        file.write(whole)
    os.unlink(root / "raw")
