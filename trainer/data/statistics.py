"""`statistics.json`: per split and column, what preprocessing and readers of a report need."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

# Classes of a label, months, grades: whole numbers of so few values are counted one by one.
MOST_COUNTED = 1000


class FeatureStatistics(BaseModel):
    """Figures of one column of one split.

    Numbers: `mean`, `std` (population), `min`, `max`, `quantiles` (0, 1/10, …, 1) over the values
    that are there, `histogram` as equal-width bins. Strings, and whole numbers of at most
    `MOST_COUNTED` values: `vocabulary` as [value, count], the most frequent first (ties: by value).
    Lists: over all their values.
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


class SplitStatistics(BaseModel):
    """All columns of one split (the label too)."""

    model_config = ConfigDict(frozen=True)

    rows: int
    features: dict[str, FeatureStatistics]


class Statistics(BaseModel):
    """The file: split name to its figures."""

    model_config = ConfigDict(frozen=True)

    splits: dict[str, SplitStatistics]
