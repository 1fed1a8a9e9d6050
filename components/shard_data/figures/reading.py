"""Figures of a dataset that is there already: its shards are read once more, one at a time."""

from __future__ import annotations

from collections.abc import Mapping

from components.shard_data.figures.collecting import collect, merge
from components.shard_data.figures.state import State
from trainer.data.blocks import concat
from trainer.data.dataset import Dataset
from trainer.data.rows import DamagedShard, read_rows
from trainer.data.statistics import SplitStatistics, Statistics
from trainer.errors import UsageError


def ranges_of(statistics: Statistics) -> dict[str, tuple[float, float]]:
    """Returns smallest and largest value of each numeric column over all splits."""
    found: dict[str, tuple[float, float]] = {}
    for split in statistics.splits.values():
        for name, figures in split.features.items():
            if figures.min is not None and figures.max is not None:
                low, high = found.get(name, (figures.min, figures.max))
                found[name] = min(low, figures.min), max(high, figures.max)
    return found


def of_dataset(
    dataset: Dataset, split: str, ranges: Mapping[str, tuple[float, float]] | None = None
) -> SplitStatistics:
    """Returns the figures of a split, of either layout, from its shards.

    Args:
      dataset: where the shards are.
      split: which of its splits.
      ranges: as `collect` takes them; None: what the dataset's own statistics say.

    Raises:
      UsageError: a shard is damaged, or there is no such split.
    """
    limits = ranges_of(dataset.statistics) if ranges is None else ranges
    features = dataset.manifest.features
    described = dataset.split(split)
    states: list[State] = []
    start = 0
    try:
        for shard in described.shards:
            if not shard.rows:
                continue
            rows = concat(list(read_rows(dataset, split, start, start + shard.rows)))
            columns = {f.name: rows.column(f) for f in features}
            states.append(collect(features, columns, shard.rows, limits, split_rows=described.rows))
            start += shard.rows
    except DamagedShard as error:
        raise UsageError(str(error)) from None
    return merge(features, states)
