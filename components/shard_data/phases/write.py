"""Phase 4, a shard at a time: gather its rows from all pieces, order and encode them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import ConfigDict

from components.shard_data import figures, work
from components.shard_data.arrange.placement import Place
from components.shard_data.encoding import files, records
from components.shard_data.encoding.columns import of_arrow, remapped
from components.shard_data.work import Work
from trainer.data.blocks import Block, pack, plan_storage
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
    """A shard to write, and the file it goes to."""

    place: Place
    path: str
    content: Content


@dataclass(frozen=True)
class Written:
    """The manifest's entry and what each bucket says of its columns."""

    # For engines whose results travel as JSON.
    __pydantic_config__: ClassVar = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    shard: Shard
    states: tuple[bytes, ...]


def run(job: Job) -> Written:
    """Writes the file; the states are what `figures.merge` takes."""
    content, place = job.content, job.place
    states: list[bytes] = []
    shard = files.write(
        Path(content.root), job.path, place.rows, _records(job, states), content.compression
    )
    return Written(shard, tuple(states))


def _records(job: Job, states: list[bytes]) -> Iterator[tuple[bytes | bytearray, int]]:
    """Yields the shard's records, a bucket after another; adds what each says to `states`."""
    content = job.content
    # Layout `rows` has no packs, but is put into order by them, too.
    planned = plan_storage(content.features)
    for number in job.place.buckets:
        rows = _bucket(content, planned, number)
        yield from records.records(planned, rows, content.layout, content.block_rows)
        columns = {feature.name: rows.column(feature) for feature in planned}
        states.append(
            figures.collect(
                planned, columns, rows.rows, content.ranges,
                split_rows=content.split_rows[job.place.split],
            )
        )  # fmt: skip


def _bucket(content: Content, planned: Sequence[Feature], number: int) -> Block:
    """Returns the rows of a bucket, in the order of their keys."""
    table = pa.Table.from_batches(
        [
            work.read_batch(content.work.path("route", piece, ".arrow"), number)
            for piece in range(content.pieces)
        ]
    )
    found = {}
    for feature in planned:
        column = of_arrow(feature, _one(table.column(feature.name)))
        found[feature.name] = remapped(column, content.renumbered.get(feature.name))
    rows = pack(planned, found, _one(table.column(work.ROW_ID)).to_numpy())
    return rows.take(np.argsort(table.column(work.KEY).to_numpy(), kind="stable"))


def _one(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
