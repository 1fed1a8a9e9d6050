"""What the page shows of each column: shares of bins or of categories, a series a split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from components.validate_data.reference import Expected, Reference
from components.validate_data.scan import SplitScan
from components.validate_data.tally import PlotTally, WordTally
from components.validate_data.validation import Finding
from components.validate_data.wording import percent, value, word
from trainer.data.dataset import Dataset
from trainer.data.manifest import Feature
from trainer.data.statistics import FeatureStatistics

Floats = npt.NDArray[np.float64]


BASELINE = "(baseline)"  # No split can be called so.
OTHER = "(all others)"
_BINS = 36
_MOST_WORDS = 8
# Whole numbers of so few values are shown one by one.
_FEW_VALUES = 24
# The picture shows the middle 98 % where the rest would flatten it.
_INNER = (0.01, 0.99)
_WIDEST = 2.5
_MARGIN = 0.15


@dataclass(frozen=True)
class Bins:
    """Shares of values [bins] by series; what lies outside the edges by series, below and above."""

    feature: Feature
    edges: Floats
    shares: dict[str, Floats]
    below: dict[str, float]
    above: dict[str, float]


@dataclass(frozen=True)
class Words:
    """Categories with their share by series; `is_new`: the reference does not have it."""

    rows: list[tuple[str, dict[str, float], bool]]


@dataclass(frozen=True)
class Line:
    """A series' figures in words."""

    series: str
    missing: str
    middle: str
    spread: str


@dataclass(frozen=True)
class ColumnPicture:
    """One card of the page."""

    feature: Feature
    is_label: bool
    findings: tuple[Finding, ...]
    lines: list[Line]
    bins: Bins | None = None
    words: Words | None = None
    headings: tuple[str, str] = field(default=("", ""))

    @property
    def kind(self) -> str:
        """The type as a person calls it."""
        feature = self.feature
        shape = "".join(f"[{'?' if n is None else n}]" for n in feature.shape)
        return (feature.logical or {"string": "text"}.get(feature.dtype, feature.dtype)) + shape

    @property
    def badges(self) -> dict[str, str]:
        """Broken rules and their levels."""
        return {f.rule: f.level for f in self.findings}


def edges(baseline: Reference | None, own: Reference) -> dict[str, Floats]:
    """Returns the bins' edges of each numeric column that is drawn as a histogram."""
    found = {}
    for name, expected in {**own.columns, **(baseline.columns if baseline else {})}.items():
        if expected.is_number and not _few(expected.feature, expected.figures):
            found[name] = _edges(expected)
    return found


def _few(feature: Feature, figures: FeatureStatistics) -> bool:
    whole = feature.dtype == "int64" and feature.logical in (None, "bool")
    return whole and figures.vocabulary is not None and len(figures.vocabulary) <= _FEW_VALUES


def _edges(expected: Expected) -> Floats:
    low, high = expected.figures.min or 0.0, expected.figures.max or 0.0
    values, counts = expected.points
    inner = values[np.searchsorted(counts, np.array(_INNER) * expected.total)]
    span = float(inner[1] - inner[0])
    if span and high - low > _WIDEST * span:
        low = max(low, float(inner[0]) - _MARGIN * span)
        high = min(high, float(inner[1]) + _MARGIN * span)
    if low == high:
        margin = max(0.5, _BINS * float(np.spacing(abs(high))))
        low, high = low - margin, high + margin
    if expected.feature.dtype == "int64" and high - low < _BINS:
        return np.arange(np.floor(low) - 0.5, np.ceil(high) + 1)
    return np.unique(np.linspace(low, high, _BINS + 1))


def columns(
    dataset: Dataset,
    scans: dict[str, SplitScan],
    baseline: Reference | None,
    findings: Sequence[Finding],
) -> list[ColumnPicture]:
    """Returns a picture a column: those with findings first, then the label, then the rest."""
    found = []
    for feature in dataset.manifest.features:
        figures = {s: dataset.statistics.splits[s].features[feature.name] for s in scans}
        expected = baseline.columns.get(feature.name) if baseline else None
        if expected is not None:
            figures[BASELINE] = expected.figures
        ours = tuple(f for f in findings if f.column == feature.name)
        is_label = feature.name == dataset.manifest.label.name
        bins = _bins(feature, scans, expected)
        is_new = any(f.rule == "new_category" for f in ours)
        words = None if bins else _words(feature, scans, figures, is_new=is_new)
        lines = [_line(feature, series, f) for series, f in figures.items()]
        headings = _headings(feature, next(iter(figures.values())))
        found.append(ColumnPicture(feature, is_label, ours, lines, bins, words, headings))
    return sorted(found, key=_order)


def _order(column: ColumnPicture) -> tuple[int, bool]:
    levels = {f.level for f in column.findings}
    return 0 if "block" in levels else 1 if levels else 2, not column.is_label


def _bins(feature: Feature, scans: dict[str, SplitScan], expected: Expected | None) -> Bins | None:
    plots = {split: scan.columns[feature.name].plot for split, scan in scans.items()}
    drawn = {split: plot for split, plot in plots.items() if plot is not None}
    if not drawn:
        return None
    at = next(iter(drawn.values())).edges
    counts = {split: plot.counts.astype(np.float64) for split, plot in drawn.items()}
    if expected is not None and expected.is_number:
        counts[BASELINE] = _interpolated(expected, at)
    shares = {series: c / max(c.sum(), 1) for series, c in counts.items()}
    return Bins(
        feature,
        at,
        {series: s[1:-1] for series, s in shares.items()},
        {series: float(s[0]) for series, s in shares.items()},
        {series: float(s[-1]) for series, s in shares.items()},
    )


def _interpolated(expected: Expected, at: Floats) -> Floats:
    """Counts between the edges: of few whole numbers as they are, else evenly between points."""
    if counted := expected.figures.vocabulary:
        tally = PlotTally(at)
        values = np.array([float(text) for text, _ in counted])
        tally.add_counted(values, np.array([count for _, count in counted]))
        return tally.counts.astype(np.float64)
    values, counts = expected.points
    ends = np.array(expected.figures.histogram_edges or (), np.float64)
    held = np.array(expected.figures.histogram_counts or (), np.int64)
    known = np.concatenate((values, ends))
    below = np.concatenate((counts, np.zeros(min(len(ends), 1), np.int64), np.cumsum(held)))
    order = np.argsort(known, kind="stable")
    cumulated = np.interp(at, known[order], np.maximum.accumulate(below[order]), left=0)
    return np.diff(cumulated, prepend=0, append=expected.total)


def _words(
    feature: Feature,
    scans: dict[str, SplitScan],
    figures: dict[str, FeatureStatistics],
    *,
    is_new: bool,
) -> Words | None:
    """is_new: mark the categories that the reference lacks; a few are there by chance."""
    counted = {series: dict(f.vocabulary or ()) for series, f in figures.items()}
    if not any(counted.values()):
        return None
    totals = {s: max(figures[s].count, sum(c.values()), 1) for s, c in counted.items()}
    shares = {s: {w: n / totals[s] for w, n in c.items()} for s, c in counted.items()}
    new = _new_words(feature, scans) if is_new else set()
    largest: dict[str, float] = {}
    for each in shares.values():
        for text, share in each.items():
            largest[text] = max(largest.get(text, 0), share)
    ranked = sorted(largest, key=lambda text: (-largest[text], text))
    shown = ranked[:_MOST_WORDS] + [t for t in ranked[_MOST_WORDS:] if t in new][:3]
    if feature.dtype == "int64":
        shown = sorted(ranked, key=int) if len(ranked) <= _FEW_VALUES else shown
    names = {"0": "false", "1": "true"} if feature.logical == "bool" else {}
    rows = [
        (word(names.get(t, t)), {s: each.get(t, 0.0) for s, each in shares.items()}, t in new)
        for t in shown
    ]
    rest = {s: max(0.0, 1 - sum(each.get(t, 0.0) for t in shown)) for s, each in shares.items()}
    if len(ranked) > len(shown):
        rows.append((OTHER, rest, False))
    return Words(rows)


def _new_words(feature: Feature, scans: dict[str, SplitScan]) -> set[str]:
    """Categories that the reference of their split lacks: the baseline where there is one."""
    found: set[str] = set()
    for scan in scans.values():
        tally = next(iter(scan.columns[feature.name].against.values()), None)
        if isinstance(tally, WordTally) and tally.expected.knows_all_words:
            found |= set(tally.new_words)
    return found


def _headings(feature: Feature, figures: FeatureStatistics) -> tuple[str, str]:
    if feature.dtype != "string":
        return "mean ± std", "range"
    if figures.vocabulary is None:
        return "mean length", "lengths"
    return "most frequent", "values"


def _line(feature: Feature, series: str, figures: FeatureStatistics) -> Line:
    missing = percent(figures.missing / max(figures.count + figures.missing, 1))
    middle = spread = ""
    lengths = figures.lengths
    if feature.dtype == "string" and figures.vocabulary:
        (text, _), *_ = figures.vocabulary
        middle = word(text)
        about = "about " if "distinct" in (figures.approximate or ()) else ""
        spread = f"{about}{figures.distinct or len(figures.vocabulary):,}"
    elif feature.dtype == "string" and lengths is not None:
        middle = f"{lengths.mean:,.0f} bytes"
        spread = f"{lengths.min:,} to {lengths.max:,}"
    elif figures.mean is not None and figures.min is not None and figures.max is not None:
        middle = value(feature, figures.mean)
        if feature.logical not in ("date", "timestamp"):
            plain = feature.model_copy(update={"dtype": "float32"})
            middle = f"{value(plain, figures.mean)} ± {value(plain, figures.std or 0.0)}"
        spread = f"{value(feature, figures.min)} to {value(feature, figures.max)}"
    return Line(series, missing, middle, spread)
