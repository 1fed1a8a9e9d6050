"""One pass over the rows of a split: every block once, all tallies at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from components.validate_data import fingerprints
from components.validate_data.leakage import SAMPLE_ROWS
from components.validate_data.reference import Expected, Reference
from components.validate_data.tally import Cells, NumberTally, PlotTally, Sample, WordTally
from trainer.data.blocks import Block, missing
from trainer.data.dataset import Dataset
from trainer.data.manifest import Feature
from trainer.data.rows import DamagedShard, read_rows
from trainer.errors import UsageError

Array = npt.NDArray[Any]
Against = NumberTally | WordTally


@dataclass
class ColumnScan:
    """What passed of one column. `against`: its tally by the name of each reference."""

    feature: Feature
    against: dict[str, Against]
    plot: PlotTally | None
    missing: Sample = field(default_factory=Sample)

    def add(self, block: Block) -> None:
        """Takes a block."""
        cells = Cells.of(self.feature, block.column(self.feature), block.row_id)
        self.missing.add(cells.missing)
        for tally in self.against.values():
            tally.add(cells)
        if self.plot is not None:
            self.plot.add(cells)


@dataclass
class SplitScan:
    """What passed of a split. hashes: uint64 [rows] with row_id [rows], in stored order."""

    split: str
    rows: int
    columns: dict[str, ColumnScan]
    hashes: npt.NDArray[np.uint64]
    row_id: npt.NDArray[np.int64]
    sample: dict[str, Array]


def scan(
    dataset: Dataset,
    split: str,
    references: Sequence[Reference],
    edges: Mapping[str, npt.NDArray[np.float64]],
    *,
    sampled: bool,
) -> SplitScan:
    """Reads a split once.

    Args:
      dataset: what is read, of either layout.
      split: which split.
      references: what its columns are compared with, where they have them.
      edges: of the bins to draw, for numeric columns.
      sampled: keep the first rows' scalar columns for `leakage`.

    Raises:
      UsageError: a shard is damaged.
    """
    features = dataset.manifest.features
    columns = {f.name: _column_scan(f, references, edges) for f in features}
    hashes, ids = [], []
    sample: dict[str, list[Array]] = {}
    taken = 0
    try:
        for block in read_rows(dataset, split):
            for column in columns.values():
                column.add(block)
            hashes.append(fingerprints.of_rows(features, block))
            ids.append(block.row_id)
            if sampled and taken < SAMPLE_ROWS:
                taken += block.rows
                for feature in features:
                    if (values := _scalar(feature, block)) is not None:
                        sample.setdefault(feature.name, []).append(values)
    except DamagedShard as error:
        raise UsageError(str(error)) from None
    return SplitScan(
        split,
        sum(map(len, ids)),
        columns,
        np.concatenate([np.zeros(0, np.uint64), *hashes]),
        np.concatenate([np.zeros(0, np.int64), *ids]),
        {name: np.concatenate(parts) for name, parts in sample.items()},
    )


def _column_scan(
    feature: Feature,
    references: Sequence[Reference],
    edges: Mapping[str, npt.NDArray[np.float64]],
) -> ColumnScan:
    against: dict[str, Against] = {}
    for reference in references:
        expected = reference.columns.get(feature.name)
        if expected is not None and (tally := _tally(feature, expected)):
            against[reference.name] = tally
    plot = PlotTally(edges[feature.name]) if feature.name in edges else None
    return ColumnScan(feature, against, plot)


def _tally(feature: Feature, expected: Expected) -> Against | None:
    if expected.is_number:
        return NumberTally(expected)
    return WordTally(feature, expected) if expected.words else None


def _scalar(feature: Feature, block: Block) -> Array | None:
    """A column as float64 [rows] with NaN for missing; None: lists, and text without codes."""
    if feature.shape or (feature.dtype == "string" and feature.dictionary is None):
        return None
    column = block.column(feature)
    return np.where(missing(feature, column), np.nan, column.values.astype(np.float64))
