"""Phase 2, a piece at a time: which rows are kept, and the keys that their places depend on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from components.shard_data import work
from components.shard_data.arrange import keys, split
from components.shard_data.options import ShardOptions
from components.shard_data.types import cast
from components.shard_data.types.plan import Plan
from components.shard_data.types.profile import MOST_CLASSES
from components.shard_data.work import Work
from trainer.data.blocks import NULL_CODE, NULL_INT


@dataclass(frozen=True)
class Job:
    """A piece that was scanned. `first`: the number of its first row over all pieces."""

    number: int
    first: int
    plans: Mapping[str, Plan]
    options: ShardOptions
    work: Work


@dataclass(frozen=True)
class Ranked:
    """What the rows of a piece are, together.

    missing: rows without label. values: the label's different numbers; None: more than a
    classifier has, or text. by_split: rows of each split, where the row itself says which.
    """

    rows: int
    missing: int
    values: tuple[float, ...] | tuple[int, ...] | None
    by_split: dict[int, int]
    no_moment: int = 0


def run(job: Job) -> Ranked:
    """Returns counts; keys, splits and positions of kept rows lie in the work directory."""
    batch = work.read_batch(job.work.path("scan", job.number, ".arrow"), 0)
    label = _settled(job, batch, job.options.label)
    kept = np.flatnonzero(~missing(label))
    row_id = batch.column(work.ROW).to_numpy()[kept] + job.first
    arrays: dict[str, npt.NDArray[Any]] = {
        "kept": kept,
        "row_id": row_id,
        "key": keys.of_rows(row_id, job.options.seed),
    }
    no_moment = 0
    if job.options.split_time is not None:
        moments = _moments(_settled(job, batch, job.options.split_time))[kept]
        no_moment = int((moments == NULL_INT).sum())
        arrays["moment"] = keys.of_moments(moments)
    codes = _codes(job, batch)
    if codes is not None:
        arrays["split"] = codes[kept]
    work.write_arrays(job.work.path("rank", job.number, ".npz"), arrays)
    counted = np.bincount(arrays["split"]) if codes is not None else np.zeros(0, np.int64)
    return Ranked(
        rows=len(kept),
        missing=len(label) - len(kept),
        values=_values(label, job.plans[job.options.label]),
        by_split={int(i): int(counted[i]) for i in np.flatnonzero(counted)},
        no_moment=no_moment,
    )


def missing(array: pa.Array) -> npt.NDArray[np.bool_]:
    """Bool [n]: which rows of a settled column are null."""
    kind = array.type
    if kind == pa.float32():
        return np.isnan(array.to_numpy())
    if kind == pa.int64():
        return np.asarray(array.to_numpy() == NULL_INT)
    if kind == pa.int32():
        return np.asarray(array.to_numpy() == NULL_CODE)
    return np.asarray(pc.is_null(array).to_numpy(zero_copy_only=False), bool)


def _settled(job: Job, batch: pa.RecordBatch, name: str) -> pa.Array:
    plan = job.plans[name]
    if name not in batch.schema.names:
        return cast.settle(plan, pa.nulls(batch.num_rows), job.options).array
    return cast.settle(plan, batch.column(name), job.options).array


def _moments(array: pa.Array) -> npt.NDArray[np.int64]:
    return np.asarray(array.to_numpy(), np.int64)


def _codes(job: Job, batch: pa.RecordBatch) -> npt.NDArray[np.uint8] | None:
    """Returns each row's split where a column says it, or a hash of columns."""
    if job.options.split_column is not None:
        # The plan's words are the names of the splits.
        return np.asarray(_settled(job, batch, job.options.split_column).to_numpy(), np.uint8)
    if job.options.split_by:
        columns = [_settled(job, batch, name) for name in job.options.split_by]
        return split.by_values(columns, job.options)
    return None


def _values(label: pa.Array, plan: Plan) -> tuple[float, ...] | tuple[int, ...] | None:
    if plan.dtype == "string" or pa.types.is_nested(label.type):
        return None
    present = np.unique(label.to_numpy()[~missing(label)])
    return tuple(present.tolist()) if len(present) <= MOST_CLASSES else None
