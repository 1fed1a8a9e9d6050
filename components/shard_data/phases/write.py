"""Phase 4, a shard at a time: gather its rows from all pieces, order and encode them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from components.shard_data import figures, work
from components.shard_data.encoding import columns, files, records
from components.shard_data.work import Work
from trainer.data.compressed import Compression
from trainer.data.manifest import Feature, Layout, Shard


@dataclass(frozen=True)
class Content:
    """What all shards have in common.

    renumbered: new codes of columns some of whose words no kept row has. ranges: smallest and
    largest number of each column. split_rows: rows of each split.
    """

    pieces: int
    features: tuple[Feature, ...]
    renumbered: Mapping[str, npt.NDArray[np.int32]]
    ranges: Mapping[str, tuple[float, float]]
    split_rows: Mapping[str, int]
    layout: Layout
    block_rows: int
    compression: Compression | None
    root: str
    work: Work


@dataclass(frozen=True)
class Job:
    """A shard to write: its number over all splits, and where it goes."""

    number: int
    split: str
    path: str
    rows: int
    content: Content


@dataclass(frozen=True)
class Written:
    """The manifest's entry and what the shard says of its columns."""

    shard: Shard
    state: bytes


def run(job: Job) -> Written:
    """Writes the file; the state is what `figures.merge` takes."""
    content = job.content
    table = _gathered(job)
    order = pa.array(np.argsort(table.column(work.KEY).to_numpy(), kind="stable"))
    found = {}
    for feature in content.features:
        array = _one(table.column(feature.name)).take(order)
        column = columns.of_arrow(feature, array)
        found[feature.name] = columns.remapped(column, content.renumbered.get(feature.name))
    row_id = _one(table.column(work.ROW_ID)).take(order).to_numpy()
    payloads = records.records(content.features, found, row_id, content.layout, content.block_rows)
    shard = files.write(Path(content.root), job.path, job.rows, payloads, content.compression)
    state = figures.collect(
        content.features, found, job.rows, content.ranges,
        split_rows=content.split_rows[job.split],
    )  # fmt: skip
    return Written(shard, state)


def _gathered(job: Job) -> pa.Table:
    """Returns the shard's rows in the order of the pieces."""
    content = job.content
    return pa.Table.from_batches(
        [
            work.read_batch(content.work.path("route", piece, ".arrow"), job.number)
            for piece in range(content.pieces)
        ]
    )


def _one(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
