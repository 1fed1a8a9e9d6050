"""Figures of one column in one pass: what statistics.json says, as far as that needs no second one.

Moments are merged batch by batch (Chan, Golub, LeVeque). Values are counted while they are few.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt

from trainer.data.manifest import DType
from trainer.data.statistics import MOST_COUNTED, FeatureStatistics

# Beyond it, different values are no longer told apart one by one (10 MB a column); of words, the
# rarer half is forgotten then.
_MOST_DISTINCT: dict[DType, int] = {"float32": MOST_COUNTED, "int64": 100_000, "string": 200_000}
_LARGEST_VOCABULARY = 10_000
# Bytes. Longer values are pictures and documents, not words.
_LONGEST_WORD = 1024


class NotFinite(ValueError):
    """An infinite number."""


class Tally:
    """Takes the values of a column, batch by batch."""

    def __init__(self, dtype: DType) -> None:
        self._dtype = dtype
        self.count = 0
        self.missing = 0
        self._numbers = 0
        self._mean = self._squares = 0.0
        self._min, self._max = math.inf, -math.inf
        # None: too many, or no words.
        self._counts: Counter[Any] | None = Counter()
        self._forgotten = False

    @property
    def counts(self) -> Counter[Any] | None:
        """Each value and how often it is there; None: they are too many, or no words."""
        return None if self._forgotten else self._counts

    def add(self, values: npt.NDArray[Any], rows: int, missing: int) -> None:
        """Counts one batch.

        Args:
          values: all values that are there, flat (a list's one after another).
          rows: how many rows have a value.
          missing: how many have none.

        Raises:
          NotFinite: one of them is infinite.
        """
        self.count += rows
        self.missing += missing
        if len(values) == 0:
            return
        if self._dtype == "string":
            self._add_words(values.tolist())
        else:
            self._add_numbers(values)

    def _add_words(self, words: list[bytes]) -> None:
        if self._counts is None:
            return
        self._counts.update(words)
        most = _MOST_DISTINCT[self._dtype]
        if max(map(len, words)) > _LONGEST_WORD:
            self._counts = None
        elif len(self._counts) > most:
            self._counts = Counter(dict(self._counts.most_common(most // 2)))
            self._forgotten = True

    def _add_numbers(self, values: npt.NDArray[Any]) -> None:
        wide = values.astype(np.float64)
        if not np.isfinite(wide).all():
            raise NotFinite
        before = self._numbers
        self._numbers = total = before + len(wide)
        mean = float(wide.mean())
        apart = mean - self._mean
        self._squares += float(np.square(wide - mean).sum())
        self._squares += apart**2 * before * len(wide) / total
        self._mean += apart * len(wide) / total
        self._min = min(self._min, float(wide.min()))
        self._max = max(self._max, float(wide.max()))
        if self._counts is not None:
            found, times = np.unique(values, return_counts=True)
            self._counts.update(dict(zip(found.tolist(), times.tolist(), strict=True)))
            if len(self._counts) > _MOST_DISTINCT[self._dtype]:
                self._counts = None

    def figures(self) -> FeatureStatistics:
        """Returns what is known."""
        distinct = None if self.counts is None else len(self.counts)
        common = {"count": self.count, "missing": self.missing, "distinct": distinct}
        if self._dtype == "string":
            return FeatureStatistics(**common, vocabulary=self._vocabulary(_LARGEST_VOCABULARY))
        if self._numbers == 0:
            return FeatureStatistics(**common)
        few = self._dtype == "int64" and distinct is not None and distinct <= MOST_COUNTED
        return FeatureStatistics(
            **common,
            mean=self._mean,
            std=math.sqrt(self._squares / self._numbers),
            min=self._min,
            max=self._max,
            vocabulary=self._vocabulary(MOST_COUNTED) if few else None,
        )

    def _vocabulary(self, most: int) -> tuple[tuple[str, int], ...] | None:
        """Returns the most frequent values as text; ties by value. None: they are no text."""
        if self._counts is None:
            return None
        ranked = sorted(self._counts.items(), key=lambda pair: (-pair[1], pair[0]))[:most]
        try:
            return tuple(
                (value.decode() if isinstance(value, bytes) else str(value), times)
                for value, times in ranked
            )
        except UnicodeDecodeError:
            return None
