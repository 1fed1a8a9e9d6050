"""One shard's columns in, its state out; all states in, the split's figures out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from components.shard_data.figures import codes, numbers, texts
from components.shard_data.figures.state import Part, State, apart, pack, unpack
from trainer.data.blocks import Column, missing
from trainer.data.manifest import Feature
from trainer.data.statistics import FeatureStatistics, SplitStatistics


def collect(
    features: Sequence[Feature],
    columns: Mapping[str, Column],
    rows: int,
    ranges: Mapping[str, tuple[float, float]],
    *,
    split_rows: int | None = None,
) -> State:
    """Returns what one shard says of its columns.

    Args:
      features: the manifest's columns.
      columns: each column's n rows, nulls as sentinels (codes where there is a dictionary).
      rows: n.
      ranges: smallest and largest value of each numeric column over all splits, so that all have
        histograms on the same edges; a column that is not there has no value in any row.
      split_rows: rows of all shards of the split; up to `state.MOST_KEPT` its figures are exact.
        None: there is no other shard.
    """
    most = apart(rows, rows if split_rows is None else split_rows)
    parts = [_part(f, columns[f.name], ranges.get(f.name), most) for f in features]
    return pack(rows, parts)


def merge(features: Sequence[Feature], states: Sequence[State]) -> SplitStatistics:
    """Returns the figures of the split whose shards gave `states`, in the order of the shards."""
    shards = [unpack(state) for state in states]
    return SplitStatistics(
        rows=sum(rows for rows, _ in shards),
        features={
            feature.name: _figures(feature, [parts[place] for _, parts in shards])
            for place, feature in enumerate(features)
        },
    )


def _part(
    feature: Feature, column: Column, limits: tuple[float, float] | None, most: int | None
) -> Part:
    absent = missing(feature, column)
    values = column.values
    if column.splits is None:
        values = (values[~absent] if absent.any() else values).ravel()
    lost = int(absent.sum())
    count = len(absent) - lost
    if feature.dictionary is not None:
        return codes.part(values, count, lost, len(feature.dictionary))
    if feature.dtype == "string":
        return texts.part(values, count, lost, most)
    return numbers.part(values, count, lost, limits, most)


def _figures(feature: Feature, parts: Sequence[Part]) -> FeatureStatistics:
    if feature.dictionary is not None:
        return codes.figures(parts, feature.dictionary)
    return texts.figures(parts) if feature.dtype == "string" else numbers.figures(parts)
