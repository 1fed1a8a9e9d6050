"""From what all pieces say to what is stored: types, the label, the order and place of rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from components.shard_data import work
from components.shard_data.append import Base
from components.shard_data.arrange import placement, rules, split
from components.shard_data.arrange.placement import Placement
from components.shard_data.engine import Engine
from components.shard_data.findings import Findings
from components.shard_data.gather import Gathered
from components.shard_data.options import ShardOptions
from components.shard_data.phases import rank, route
from components.shard_data.phases.rank import Ranked
from components.shard_data.progress import Progress, Report
from components.shard_data.types import labels
from components.shard_data.types.decide import decide
from components.shard_data.types.plan import Plan
from components.shard_data.types.profile import MOST_CLASSES
from trainer.data.manifest import Feature, Label
from trainer.errors import UsageError

# What is gathered and ordered at once; more of them means more small reads of each piece.
_BUCKET_BYTES = 8 << 20
_MOST_BUCKETS = 4096


@dataclass(frozen=True)
class Settled:
    """What is stored, and where.

    features: the columns, without their place in blocks. renumbered: new codes of columns some of
    whose words no kept row has. ranges: smallest and largest number of each column.
    """

    features: tuple[Feature, ...]
    label: Label
    placement: Placement
    renumbered: dict[str, npt.NDArray[np.int32]]
    ranges: dict[str, tuple[float, float]]
    rule: dict[str, Any]


def settle(
    gathered: Gathered,
    engine: Engine,
    options: ShardOptions,
    say: Findings,
    report: Report,
    base: Base | None = None,
) -> Settled:
    """Decides types, label and places; the rows lie parted by bucket in the work directory.

    Args:
      gathered: the input.
      engine: who ranks and routes its pieces.
      options: how.
      say: takes the notes.
      report: takes lines of progress.
      base: the dataset that is added to.

    Raises:
      UsageError: values that have no type, no label to learn, splits without rows.
    """
    plans = _plans(gathered, options, say)
    if base is not None:
        plans = base.plans(plans, gathered.names, options)
    ranked = _ranked(gathered, engine, plans, options)
    stored, label = _label(plans, ranked, options, say, base)
    rules.check_rows(ranked, options)
    by_size = math.ceil(gathered.size / options.shard_size)
    place = placement.place(
        lambda: _loaded(gathered),
        rules.by_part(plans, ranked, options),
        sum(some.rows for some in ranked),
        options,
        say,
        counts=base.shard_counts
        if base is not None
        else lambda rows: split.shard_counts(rows, options.shards, by_size),
        bucket_rows=_bucket_rows(gathered, options),
        moments=None if base is None else base.moments,
        may_be_empty=base is not None,
    )
    routed = _routed(gathered, engine, stored, place, options, report)
    renumbered: dict[str, npt.NDArray[np.int32]] = {}
    ranges: dict[str, tuple[float, float]] = {}
    features = []
    for name, plan in stored.items():
        parts = [columns[name] for columns in routed]
        features.append(_feature(plan, parts, renumbered if base is None else None))
        _add_range(name, parts, ranges)
        _tell_of_rounding(name, parts, say)
    return Settled(
        tuple(features), label, place, renumbered, ranges, rules.described(options, place)
    )


def _routed(
    gathered: Gathered,
    engine: Engine,
    stored: Mapping[str, Plan],
    place: Placement,
    options: ShardOptions,
    report: Report,
) -> list[dict[str, route.Column]]:
    jobs = [
        route.Job(number, stored, place, options, gathered.work)
        for number in range(len(gathered.pieces))
    ]
    progress = Progress("ordered", len(jobs), report)
    routed = []
    for job, columns in zip(jobs, engine.run(route.run, jobs), strict=True):
        some = gathered.scanned[job.number]
        progress.add(some.size, some.kept, gathered.pieces[job.number].name)
        routed.append(columns)
    return routed


def _bucket_rows(gathered: Gathered, options: ShardOptions) -> int:
    """Returns how many rows are ordered at once: a number of whole blocks."""
    size = max(_BUCKET_BYTES, math.ceil(gathered.size / _MOST_BUCKETS))
    rows = sum(some.kept for some in gathered.scanned)
    blocks = size * rows // max(1, gathered.size) // options.block_rows
    return max(1, blocks) * options.block_rows


def _plans(gathered: Gathered, options: ShardOptions, say: Findings) -> dict[str, Plan]:
    """Returns how every column is read; those that are left out at the end are among them."""
    plans = {}
    for name in options.drop:
        say.drop_column(name, f"--drop {name}")
    for name in gathered.names:
        asked = options
        if name in options.drop and name != options.split_time:
            asked = options.model_copy(update={"types": {**options.types, name: "string"}})
        plan = decide(name, gathered.profiles[name], asked, gathered.where, say)
        if plan is not None:
            plans[name] = plan
    if options.label not in plans:
        rows = sum(some.kept for some in gathered.scanned)
        raise UsageError(f"label {options.label} has no value in any of the {rows:,} rows")
    for name in options.split_columns:
        rules.check_column(plans.get(name), name, options)
    return plans


def _ranked(
    gathered: Gathered, engine: Engine, plans: dict[str, Plan], options: ShardOptions
) -> list[Ranked]:
    """Ranks all pieces; rows without label are counted, and left out where that is allowed."""
    # Groups are hashed by their words: the same group the same way, whatever others there are.
    grouped = {name: replace(plans[name], words=None) for name in options.split_by}
    jobs = [
        rank.Job(number, first, {**plans, **grouped}, options, gathered.work)
        for number, first in enumerate(gathered.firsts)
    ]
    return list(engine.run(rank.run, jobs))


def _label(
    plans: dict[str, Plan],
    ranked: Sequence[Ranked],
    options: ShardOptions,
    say: Findings,
    base: Base | None,
) -> tuple[dict[str, Plan], Label]:
    """Returns the columns that are stored, in order, and the label's description."""
    rows, missing = sum(r.rows for r in ranked), sum(r.missing for r in ranked)
    name = options.label
    if missing and not options.drop_missing_label:
        raise UsageError(
            f"label {name} is missing in {missing:,} of {rows + missing:,} rows: mend them, or "
            "leave them out with --drop-missing-label"
        )
    if missing:
        say.drop_rows(missing, f"label {name} is missing")
    plan = plans[name]
    values = labels.Values(rows, plan.words if plan.dtype == "string" else _distinct(ranked))
    if base is not None:
        settled, label = plan, base.label(values)
    else:
        settled, label = labels.settle(plan, values, options, say)
    gone = {*options.drop, *([options.split_column] if options.split_column else [])}
    stored = {key: value for key, value in plans.items() if key not in gone}
    stored[name] = settled
    if len(stored) < 2:
        raise UsageError(f"there is no column beside the label {name}")
    return stored, label


def _distinct(ranked: Sequence[Ranked]) -> npt.NDArray[Any] | None:
    found = [some.values for some in ranked if some.rows]
    kept = [values for values in found if values is not None]
    if len(kept) < len(found):
        return None
    together = np.unique(np.concatenate([np.asarray(values) for values in kept]))
    return together if len(together) <= MOST_CLASSES else None


def _loaded(gathered: Gathered) -> Iterator[placement.Arrays]:
    for number in range(len(gathered.pieces)):
        yield work.read_arrays(gathered.work.path("rank", number, ".npz"))


def _feature(
    plan: Plan, parts: Sequence[route.Column], renumbered: dict[str, npt.NDArray[np.int32]] | None
) -> Feature:
    """Describes a column; words that no kept row has are left out, unless they are to stay."""
    if plan.words is not None and renumbered is not None:
        used = np.zeros(len(plan.words), bool)
        for part in parts:
            used[list(part.codes or ())] = True
        if not used.all():
            renumbered[plan.name] = (np.cumsum(used) - 1).astype(np.int32)
            words = tuple(word for word, kept in zip(plan.words, used, strict=True) if kept)
            plan = replace(plan, words=words)
    return plan.feature(nullable=any(part.nullable for part in parts))


def _add_range(
    name: str, parts: Sequence[route.Column], ranges: dict[str, tuple[float, float]]
) -> None:
    lows = [part.low for part in parts if part.low is not None]
    highs = [part.high for part in parts if part.high is not None]
    if lows:
        ranges[name] = (min(lows), max(highs))


def _tell_of_rounding(name: str, parts: Sequence[route.Column], say: Findings) -> None:
    before, after = sum(part.before for part in parts), sum(part.after for part in parts)
    if after < before:
        say.note(
            f"column {name} is stored as float32: {before:,} different numbers become {after:,}"
        )
