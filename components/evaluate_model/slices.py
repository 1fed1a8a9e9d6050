"""The split cut by a column: by value, by bins of a number, null apart, rare values together.

Bins are the quartiles of the run's training statistics, so the same bins stand in every evaluation
of a run, whatever the split. Works on raw column values; reading them is `evaluate`'s business.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from components.evaluate_model.evaluation import SliceFigures, SliceValue
from components.evaluate_model.metrics import measure
from components.evaluate_model.scored import Scored
from trainer.data.blocks import NULL_INT
from trainer.data.manifest import Feature, Manifest
from trainer.data.statistics import FeatureStatistics
from trainer.errors import UsageError, suggestion

MISSING = "(missing)"
OTHER = "(other)"
# A column's slices, "(missing)" and "(other)" included.
MOST_SLICES = 50
QUARTILES = (0.25, 0.5, 0.75)


@dataclass(frozen=True)
class Slicing:
    """One column's cut: slice `index[i]` holds row i, `names` are the slices in their order."""

    column: str
    names: tuple[SliceValue, ...]
    index: npt.NDArray[np.int64]

    def masks(self) -> Iterator[tuple[SliceValue, npt.NDArray[np.bool_]]]:
        """Yields each slice's name and its rows as bool [n]."""
        for number, name in enumerate(self.names):
            yield name, self.index == number


def check_columns(manifest: Manifest, columns: Sequence[str]) -> None:
    """Checks that the split can be cut by `columns`.

    Raises:
      UsageError: a column that is not there, or that holds more than one value a row.
    """
    known = [f.name for f in manifest.features]
    for column in columns:
        if column not in known:
            near = suggestion(column, known)
            raise UsageError(
                f"--slice {column}: there is no such column{near} (there are {', '.join(known)})"
            )
        if manifest.feature(column).shape != ():
            raise UsageError(
                f"--slice {column}: it holds a list in each row; slices need one value a row"
            )


def cut(feature: Feature, values: npt.NDArray[Any], training: FeatureStatistics | None) -> Slicing:
    """Returns the slices of one column.

    Args:
      feature: the column.
      values: [n] as a served request brings them: float32, int64 or bytes, null as a sentinel.
      training: the column's training statistics, for its quartiles; None: those of `values`.
    """
    if feature.dtype == "string":
        return _by_value(feature, values, values == b"")
    if feature.dtype == "int64":
        null = values == NULL_INT
        if len(np.unique(values[~null])) <= MOST_SLICES:
            return _by_value(feature, values, null)
        return _by_quartile(feature, values, null, training)
    return _by_quartile(feature, values, np.isnan(values), training)


def _by_value(feature: Feature, values: npt.NDArray[Any], null: npt.NDArray[np.bool_]) -> Slicing:
    """The most frequent values in their order, then "(other)", then "(missing)"."""
    index = np.zeros(len(values), np.int64)
    found, place, counts = np.unique(values[~null], return_inverse=True, return_counts=True)
    room = MOST_SLICES - bool(null.any())
    if len(found) > room:
        ranked = np.argsort(-counts, kind="stable")[: room - 1]
        kept = np.sort(ranked)
        number = np.full(len(found), len(kept))
        number[kept] = np.arange(len(kept))
        names: list[SliceValue] = [_name(feature, found[i]) for i in kept] + [OTHER]
        place = number[place]
    else:
        names = [_name(feature, value) for value in found]
    index[~null] = place
    return _with_missing(feature, names, index, null)


def _name(feature: Feature, value: Any) -> SliceValue:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if feature.logical == "bool":
        return bool(value)
    if feature.logical in ("date", "timestamp"):
        return _number(feature, value)
    return int(value)


def _number(feature: Feature, value: float) -> str:
    if feature.logical == "date":
        return str(np.datetime64(int(value), "D"))
    if feature.logical == "timestamp":
        return str(np.datetime64(int(value), "us"))
    return f"{value:.4g}"


def _by_quartile(
    feature: Feature,
    values: npt.NDArray[Any],
    null: npt.NDArray[np.bool_],
    training: FeatureStatistics | None,
) -> Slicing:
    edges = _edges(values[~null], training)
    names: list[SliceValue] = []
    for low, high in zip([None, *edges], [*edges, None], strict=True):
        if low is None and high is None:
            names.append("(all)")
        elif low is None:
            names.append(f"<{_number(feature, high)}")
        elif high is None:
            names.append(f">={_number(feature, low)}")
        else:
            names.append(f"[{_number(feature, low)}, {_number(feature, high)})")
    index = np.searchsorted(np.asarray(edges, np.float64), values, side="right").astype(np.int64)
    return _with_missing(feature, names, index, null)


def _edges(values: npt.NDArray[Any], training: FeatureStatistics | None) -> list[Any]:
    """The three quartiles, fewer where they coincide or where nothing lies below the lowest."""
    if training is not None and training.quantiles:
        known = np.asarray(training.quantiles, np.float64)
        edges = np.interp(QUARTILES, np.linspace(0, 1, len(known)), known)
        lowest = known[0]
    elif len(values):
        edges, lowest = np.quantile(values.astype(np.float64), QUARTILES), values.min()
    else:
        return []
    return [edge for edge in np.unique(edges).tolist() if edge > lowest]


def _with_missing(
    feature: Feature,
    names: list[SliceValue],
    index: npt.NDArray[np.int64],
    null: npt.NDArray[np.bool_],
) -> Slicing:
    if null.any():
        index = np.where(null, len(names), index)
        names = [*names, MISSING]
    return Slicing(feature.name, tuple(names), index)


def figures(rows: Scored, slicings: Sequence[Slicing]) -> tuple[SliceFigures, ...]:
    """Returns rows and metrics of every slice that has rows, column by column."""
    found = []
    for slicing in slicings:
        for name, mask in slicing.masks():
            part = rows.take(mask)
            if part.rows:
                measured = measure(part)
                found.append(
                    SliceFigures(
                        slice={slicing.column: name},
                        rows=part.rows,
                        metrics=measured.values,
                        reasons=measured.reasons,
                    )
                )
    return tuple(found)


def find(slices: Sequence[SliceFigures], wanted: Mapping[str, str]) -> SliceFigures | None:
    """Returns the slice whose columns have these values, written as text."""
    for part in slices:
        if {column: text(value) for column, value in part.slice.items()} == wanted:
            return part
    return None


def text(value: SliceValue) -> str:
    """Returns a slice's value as a threshold names it: AA, 3, true, [2, 7)."""
    return str(value).lower() if isinstance(value, bool) else str(value)
