"""Phase 3, a piece at a time: columns as they are stored, their rows parted by bucket."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from components.shard_data import work
from components.shard_data.arrange.placement import Placement
from components.shard_data.options import ShardOptions
from components.shard_data.phases.rank import missing
from components.shard_data.types import cast
from components.shard_data.types.plan import Plan
from components.shard_data.work import Work


@dataclass(frozen=True)
class Job:
    """A piece whose rows have places. `plans`: the columns of the dataset, in their order."""

    number: int
    plans: Mapping[str, Plan]
    placement: Placement
    options: ShardOptions
    work: Work


@dataclass(frozen=True)
class Column:
    """What a column is over the kept rows of a piece.

    low, high: of its numbers, None if it has none. codes: which words occur. before, after: how
    many different numbers there are before and after rounding. size: bytes.
    """

    nullable: bool
    low: float | None = None
    high: float | None = None
    codes: tuple[int, ...] | None = None
    before: int = 0
    after: int = 0
    size: int = 0


def run(job: Job) -> dict[str, Column]:
    """Returns what the columns are; the rows lie in the work directory, a batch a bucket."""
    arrays = work.read_arrays(job.work.path("rank", job.number, ".npz"))
    batch = work.read_batch(job.work.path("scan", job.number, ".arrow"), 0)
    whole = len(arrays["kept"]) == batch.num_rows
    bucket = job.placement.bucket_of(arrays)
    order = np.argsort(bucket, kind="stable")
    positions = pa.array(order if whole else arrays["kept"][order])
    read = dict(zip(batch.schema.names, batch.columns, strict=True))
    settled, found = {}, {}
    for name, plan in job.plans.items():
        there = read.get(name)
        if there is None:
            there = pa.nulls(batch.num_rows)
        column = cast.settle(plan, there, job.options)
        array = column.array.take(positions)
        settled[name] = array
        found[name] = _described(array, plan, column)
    settled[work.ROW_ID] = pa.array(arrays["row_id"][order])
    settled[work.KEY] = pa.array(arrays["key"][order])
    parted = pa.record_batch(list(settled.values()), names=list(settled))
    ends = np.cumsum(np.bincount(bucket, minlength=job.placement.buckets))
    starts = np.concatenate(([0], ends[:-1]))
    work.write_batches(
        job.work.path("route", job.number, ".arrow"),
        [parted.slice(start, end - start) for start, end in zip(starts, ends, strict=True)],
    )
    return found


def _described(array: pa.Array, plan: Plan, column: cast.Settled) -> Column:
    null = missing(array)
    kept: dict[str, Any] = {
        "nullable": bool(null.any()),
        "before": column.before,
        "after": column.after,
        "size": array.nbytes,
    }
    if plan.dtype == "string":
        if plan.words is None:
            return Column(**kept)
        return Column(**kept, codes=tuple(np.unique(array.to_numpy()[~null]).tolist()))
    if plan.shape:
        values = pc.drop_null(array.flatten()).to_numpy(zero_copy_only=False)
    else:
        values = array.to_numpy()[~null]
    if not len(values):
        return Column(**kept)
    return Column(**kept, low=float(values.min()), high=float(values.max()))
