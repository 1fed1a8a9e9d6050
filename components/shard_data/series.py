"""A column whose type is decided: what `casts` and `typed` make and everything later works on.

Nulls are the sentinels of `trainer.data.blocks`. Text is always held as int32 codes into its
sorted distinct `words`; whether the dataset stores codes or the words is decided by `stored`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from trainer.data.blocks import NULL_CODE, NULL_INT, Column
from trainer.data.manifest import DType, Feature

# Text with more values than this is stored as it is: a code then saves little, and the
# dictionary in the manifest would be read by every worker.
LARGEST_DICTIONARY = 4096

Strings = npt.NDArray[Any]


@dataclass(frozen=True)
class Series:
    """One column of n rows.

    column: float32, int64, or (text) int32 codes; scalar [n], fixed-size list [n, k], or the flat
      values of variable-length lists with their splits.
    words: text only: object array of UTF-8 bytes, sorted, distinct.
    logical: what the numbers meant ("bool", "date", "timestamp", …).
    """

    name: str
    dtype: DType
    column: Column
    words: Strings | None = None
    logical: str | None = None

    @property
    def shape(self) -> tuple[int | None, ...]:
        """() scalar, (k,) fixed-size list, (None,) variable-length list."""
        if self.column.splits is not None:
            return (None,)
        return tuple(self.column.values.shape[1:])

    @property
    def missing(self) -> npt.NDArray[np.bool_]:
        """Bool [n]: which rows are null."""
        if self.shape:
            valid = self.column.valid
            rows = len(self.column.values if self.column.splits is None else self.column.splits[1:])
            return np.zeros(rows, bool) if valid is None else ~valid
        values = self.column.values
        if self.dtype == "float32":
            return np.isnan(values)
        null = NULL_CODE if self.dtype == "string" else NULL_INT
        return np.asarray(values == null)

    def take(self, rows: npt.NDArray[np.int64]) -> Series:
        """Returns the rows at these positions [m]; words that no row has any more stay."""
        return replace(self, column=self.column.take(rows))

    def compact(self) -> Series:
        """Returns the series with only those words that occur."""
        if self.words is None:
            return self
        codes = self.column.values
        used = np.zeros(len(self.words) + 1, bool)
        used[codes] = True  # A null is code -1: the extra last place.
        used[-1] = False
        renumber = np.where(used, np.cumsum(used) - 1, NULL_CODE).astype(np.int32)
        return replace(
            self,
            column=replace(self.column, values=renumber[codes]),
            words=self.words[used[:-1]],
        )

    def feature(self, *, coded: bool = False) -> Feature:
        """Returns the manifest's entry; `coded` asks for a dictionary however long."""
        dictionary = None
        scalar_words = None if self.shape else self.words
        if scalar_words is not None and (coded or len(scalar_words) <= LARGEST_DICTIONARY):
            dictionary = tuple(word.decode() for word in scalar_words)
        return Feature(
            name=self.name,
            dtype=self.dtype,
            shape=self.shape,
            nullable=bool(self.missing.any()),
            logical=self.logical,
            dictionary=dictionary,
        )

    def stored(self, feature: Feature) -> Column:
        """Returns the column as blocks hold it: codes with a dictionary, else bytes."""
        if self.words is None or feature.dictionary is not None:
            return self.column
        with_null = np.append(self.words, np.array([b""], object))
        return replace(self.column, values=with_null[self.column.values])


def from_texts(name: str, codes: npt.NDArray[np.int32], texts: list[str]) -> Series:
    """Returns a text series from codes [n] (-1: null) into `texts`, distinct, in any order."""
    order = sorted(range(len(texts)), key=texts.__getitem__)
    rank = np.empty(len(texts) + 1, np.int32)
    rank[order] = np.arange(len(texts), dtype=np.int32)
    rank[-1] = NULL_CODE
    words = np.empty(len(texts), object)
    words[:] = [texts[i].encode() for i in order]
    return Series(name, "string", Column(rank[codes]), words).compact()
