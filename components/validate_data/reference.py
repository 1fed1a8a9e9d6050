"""What rows are compared with: the figures of another split, of a baseline or of a run's training.

Only statistics are needed: a run keeps those of its training data, wherever the data is now.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from trainer.data.dataset import Dataset
from trainer.data.manifest import Feature
from trainer.data.statistics import LARGE_SHARE, FeatureStatistics

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

# Bins of the distance hold at least so much of the reference.
_LEAST_SHARE = 0.045
_TAIL = 0.001


@dataclass(frozen=True)
class Expected:
    """One column of a reference."""

    feature: Feature
    figures: FeatureStatistics

    @property
    def is_number(self) -> bool:
        """Whether it has values to compare by size."""
        return self.feature.dtype != "string" and self.figures.min is not None

    @cached_property
    def points(self) -> tuple[Floats, Counts]:
        """Rising values, and how many of all are at most as large as each."""
        figures = self.figures
        if figures.cumulative:
            values, counts = zip(*figures.cumulative, strict=True)
            return np.array(values), np.array(counts)
        # Statistics of an earlier version, or of foreign records: what they have is enough.
        edges = np.array(figures.histogram_edges or (figures.min, figures.max), np.float64)
        counted = np.array(figures.histogram_counts or (figures.count,), np.int64)
        return edges[1:], np.cumsum(counted)

    @property
    def total(self) -> int:
        """How many values there are; of a list, over all rows."""
        return int(self.points[1][-1])

    @cached_property
    def bounds(self) -> tuple[Floats, Counts]:
        """Where bins of the distance end, without the last; and the bins' counts [ends + 1]."""
        values, counts = self.points
        chosen, before = [], 0
        for place in range(len(values) - 1):
            if counts[place] - before >= _LEAST_SHARE * self.total:
                chosen.append(place)
                before = counts[place]
        places = np.array(chosen, np.int64)
        return values[places], np.diff(counts[places], prepend=0, append=self.total)

    @cached_property
    def tails(self) -> tuple[tuple[float, int], tuple[float, int]]:
        """Below and above which values are rare, each with its rank from that end, from 1."""
        if not self.figures.cumulative:
            return (float(self.figures.min or 0), 1), (float(self.figures.max or 0), 1)
        values, counts = self.points
        low = int(np.searchsorted(counts, _TAIL * self.total))
        high = int(np.searchsorted(counts, (1 - _TAIL) * self.total))
        before = int(counts[low - 1]) if low else 0
        # A value that many share has the one just below it beside it (`cumulative`): then as many
        # as reach that one lie below. Otherwise some of those between may, too.
        shared = counts[low] - before >= LARGE_SHARE * self.total
        below = before if shared or not low else int(counts[low]) - 1
        above = self.total - int(counts[high])
        return (float(values[low]), below + 1), (float(values[high]), above + 1)

    @cached_property
    def words(self) -> dict[str, int] | None:
        """Categories with their counts; None: it has none, or they are not all known."""
        figures = self.figures
        if self.feature.dtype != "string" or figures.vocabulary is None:
            return None
        return dict(figures.vocabulary)

    @property
    def knows_all_words(self) -> bool:
        """Whether a word that `words` lacks was nowhere in the reference."""
        figures = self.figures
        counted = len(figures.vocabulary or ())
        return not figures.approximate and figures.distinct == counted

    @property
    def singles(self) -> int:
        """Categories that are there once."""
        return sum(count == 1 for count in (self.words or {}).values())


@dataclass(frozen=True)
class Reference:
    """Columns by name, and how people call what they come from."""

    name: str
    columns: dict[str, Expected]
    rows: int

    @classmethod
    def of(cls, name: str, dataset: Dataset, split: str, features: Sequence[Feature]) -> Reference:
        """Returns the columns of `dataset` that can be compared with `features`."""
        figures = dataset.split_statistics(split)
        ours = {f.name: f for f in features}
        return cls(
            name,
            {
                f.name: Expected(f, figures.features[f.name])
                for f in dataset.manifest.features
                if f.name in ours and f.name in figures.features and comparable(ours[f.name], f)
            },
            figures.rows,
        )


def training_split(dataset: Dataset) -> str:
    """Returns the split that others are compared with: `train`; the first where there is none."""
    splits = list(dataset.manifest.splits)
    return "train" if "train" in splits else splits[0]


def comparable(ours: Feature, theirs: Feature) -> bool:
    """Whether two columns of one name hold values that can be compared: numbers, or text."""
    kinds = {f.dtype == "string" for f in (ours, theirs)}
    return len(kinds) == 1 and ours.shape == theirs.shape
