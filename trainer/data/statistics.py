"""`statistics.json`: per split and column, what preprocessing and readers of a report need."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

# Classes of a label, months, grades: whole numbers of so few values are counted one by one.
MOST_COUNTED = 1000
# Enough for every dictionary, and for embeddings of longer vocabularies.
LARGEST_VOCABULARY = 10_000
# Shares of the values at which `cumulative` has a point: closer together at both ends.
LEVELS = (
    *(0.0, 0.001, 0.01, 0.02),
    *(percent / 100 for percent in range(5, 100, 5)),
    *(0.98, 0.99, 0.999, 1.0),
)
# A value that so large a share has is parted from those below it in `cumulative`.
LARGE_SHARE = 0.04


class Lengths(BaseModel):
    """Of the values of a text column, in bytes."""

    model_config = ConfigDict(frozen=True)

    min: int
    mean: float
    max: int


class FeatureStatistics(BaseModel):
    """Figures of one column of one split.

    Numbers: `mean`, `std` (population), `min`, `max`, `quantiles` (0, 1/10, …, 1) over the values
    that are there, `histogram` as equal-width bins. Strings, and whole numbers of at most
    `MOST_COUNTED` values: `vocabulary` as [value, count], the most frequent first (ties: by value).
    Lists: over all their values.

    `cumulative`: [value, how many values are at most as large], rising, at the values of `LEVELS`
    and just below a value that 4 % or more have. `lengths`: of text without a dictionary; where it
    is no UTF-8 or longer than 256 bytes on average, there is no `distinct` and no `vocabulary`.

    All figures are exact but those that `approximate` names. In splits of more than a million rows
    `quantiles` and `cumulative` may be off by 1/512 of the values in rank, `distinct` by a standard
    error of 1.6 %, and `vocabulary` may count a word up to 1/512 of the values too low: at worst,
    where a split is written in 512 parts or more; by 1/4096 up to 64 parts.
    """

    model_config = ConfigDict(frozen=True)

    count: int
    missing: int
    distinct: int | None = None
    mean: float | None = None
    std: float | None = None
    min: float | None = None
    max: float | None = None
    quantiles: tuple[float, ...] | None = None
    histogram_edges: tuple[float, ...] | None = None
    histogram_counts: tuple[int, ...] | None = None
    vocabulary: tuple[tuple[str, int], ...] | None = None
    cumulative: tuple[tuple[float, int], ...] | None = None
    lengths: Lengths | None = None
    approximate: tuple[str, ...] | None = None


class SplitStatistics(BaseModel):
    """All columns of one split (the label too)."""

    model_config = ConfigDict(frozen=True)

    rows: int
    features: dict[str, FeatureStatistics]


class Statistics(BaseModel):
    """The file: split name to its figures."""

    model_config = ConfigDict(frozen=True)

    splits: dict[str, SplitStatistics]
