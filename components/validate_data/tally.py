"""What is counted of one column of one split while its rows pass, with the rows that stand out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from components.validate_data import chance
from components.validate_data.reference import Expected
from trainer.data.blocks import Column, missing
from trainer.data.manifest import Feature

Array = npt.NDArray[Any]
Ids = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int64]

# Row ids that a finding names.
MOST_IDS = 20
# New categories that are counted one by one.
_MOST_NEW = 1000


@dataclass(frozen=True)
class Cells:
    """Values of a block that are there, each with its row, and the rows that have none.

    values: float64 of numbers, int32 codes, or an object array of bytes [m]; a list's one after
    another. row_id: int64 [m]. missing: row ids.
    """

    values: Array
    row_id: Ids
    missing: Ids

    @classmethod
    def of(cls, feature: Feature, column: Column, row_id: Ids) -> Cells:
        """Takes one column of a block whose rows are `row_id` [n]."""
        absent = missing(feature, column)
        values = column.values
        if column.splits is not None:
            ids = np.repeat(row_id, np.diff(column.splits))
        elif not absent.any():
            ids = row_id
        else:
            values, ids = values[~absent], row_id[~absent]
        if column.splits is None and feature.shape:
            ids = np.repeat(ids, values.size // max(len(values), 1))
            values = values.ravel()
        if feature.dtype != "string":
            values = values.astype(np.float64)
        return cls(values, ids, row_id[absent])


class Sample:
    """How many values and rows stand out, and the ids of the worst; ties: who came first."""

    def __init__(self) -> None:
        self.values = 0
        self.rows = 0
        self._ids = np.zeros(0, np.int64)
        self._by = np.zeros(0)

    @property
    def ids(self) -> tuple[int, ...]:
        """At most `MOST_IDS` row ids, a row once."""
        return tuple(dict.fromkeys(self._ids.tolist()))

    def add(self, ids: Ids, by: Array | None = None) -> None:
        """Takes the rows of values [m], whole rows at a time; `by`: how far out each is."""
        if not len(ids):
            return
        self.values += len(ids)
        self.rows += len(np.unique(ids))
        if by is None and len(self._ids) >= MOST_IDS:
            return
        by = np.zeros(len(ids)) if by is None else by
        all_ids, all_by = np.concatenate((self._ids, ids)), np.concatenate((self._by, by))
        kept = np.argsort(-all_by, kind="stable")[:MOST_IDS]
        self._ids, self._by = all_ids[kept], all_by[kept]


class Outside:
    """Values below and above two bounds. rows: how many rows have any of them."""

    def __init__(self, low: float, high: float) -> None:
        self.bounds = low, high
        self.below, self.above = Sample(), Sample()
        self.rows = 0

    def add(self, values: Array, row_id: Ids) -> None:
        """Takes float64 values [m] with their rows [m], whole rows at a time."""
        low, high = self.bounds
        below, above = values < low, values > high
        either = below | above
        if either.any():
            self.below.add(row_id[below], low - values[below])
            self.above.add(row_id[above], values[above] - high)
            self.rows += len(np.unique(row_id[either]))


class NumberTally:
    """A numeric column against a reference: counts in its bins, and beyond its bounds.

    far_below, far_above: values so many ranges away that they are of another kind.
    """

    def __init__(self, expected: Expected) -> None:
        self.expected = expected
        self._ends, reference = expected.bounds
        self.bins: Counts = np.zeros(len(reference), np.int64)
        low, high = expected.figures.min or 0.0, expected.figures.max or 0.0
        self.range = Outside(low, high)
        self.tails = Outside(*(bound for bound, _ in expected.tails))
        far = chance.FAR * (high - low) or np.inf  # a constant has no scale
        self._far = low - far, high + far
        self.far_below = self.far_above = 0
        self.smallest, self.largest = np.inf, -np.inf

    @property
    def values(self) -> int:
        """How many values there are."""
        return int(self.bins.sum())

    def add(self, cells: Cells) -> None:
        """Takes the values of a block."""
        values = cells.values
        if not len(values):
            return
        places = np.searchsorted(self._ends, values)
        self.bins += np.bincount(places, minlength=len(self.bins))
        self.smallest = min(self.smallest, float(values.min()))
        self.largest = max(self.largest, float(values.max()))
        self.far_below += int((values < self._far[0]).sum())
        self.far_above += int((values > self._far[1]).sum())
        self.range.add(values, cells.row_id)
        self.tails.add(values, cells.row_id)


class WordTally:
    """A column of categories against a reference: counts of its words, and words that it lacks."""

    def __init__(self, feature: Feature, expected: Expected) -> None:
        self.expected = expected
        self.known = list(expected.words or ())
        # The last place: every other word.
        self.counts: Counts = np.zeros(len(self.known) + 1, np.int64)
        self.new = Sample()
        self.new_words: dict[str, int] = {}
        self._dictionary = feature.dictionary
        self._value_set: Any = None
        self._places: Counts | None = None
        if self._dictionary is not None:
            place = {word: i for i, word in enumerate(self.known)}
            self._places = np.array([place.get(w, -1) for w in self._dictionary], np.int64)

    @property
    def values(self) -> int:
        """How many values there are."""
        return int(self.counts.sum())

    def add(self, cells: Cells) -> None:
        """Takes the values of a block."""
        if not len(cells.values):
            return
        places = self._places_of(cells.values)
        new = places < 0
        self.counts += np.bincount(np.where(new, len(self.known), places), None, len(self.counts))
        if new.any():
            self.new.add(cells.row_id[new])
            self._name(cells.values[new])

    def _places_of(self, values: Array) -> Counts:
        if self._places is not None:
            return self._places[values]
        import pyarrow as pa
        import pyarrow.compute as pc

        if self._value_set is None:
            self._value_set = pa.array([w.encode() for w in self.known], pa.large_binary())
        found = pc.index_in(pa.array(values, pa.large_binary()), value_set=self._value_set)
        return pc.fill_null(found, -1).to_numpy().astype(np.int64)

    def _name(self, values: Array) -> None:
        for value in values.tolist():
            word = self._dictionary[value] if self._dictionary else value.decode("utf-8", "replace")
            if word in self.new_words or len(self.new_words) < _MOST_NEW:
                self.new_words[word] = self.new_words.get(word, 0) + 1


@dataclass
class PlotTally:
    """A numeric column in bins for the eye; the first and the last hold what lies outside.

    edges: [bins + 1], rising. counts: [bins + 2].
    """

    edges: npt.NDArray[np.float64]
    counts: Counts = field(init=False)

    def __post_init__(self) -> None:
        self.counts = np.zeros(len(self.edges) + 1, np.int64)

    def add(self, cells: Cells) -> None:
        """Takes the values of a block."""
        self.counts += np.bincount(self._places(cells.values), minlength=len(self.counts))

    def add_counted(self, values: npt.NDArray[np.float64], times: Counts) -> None:
        """Takes different values [m] and how often each is there."""
        np.add.at(self.counts, self._places(values), times)

    def _places(self, values: Array) -> Counts:
        places = np.searchsorted(self.edges, values, side="right")
        places[values == self.edges[-1]] = len(self.edges) - 1
        return places
