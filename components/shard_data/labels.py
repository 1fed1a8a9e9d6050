"""The label: what kind it is, which classes it has, and what makes it unusable."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from components.shard_data.findings import Findings
from components.shard_data.options import ShardOptions
from components.shard_data.series import Series
from trainer.data.manifest import Label, LabelKind
from trainer.errors import UsageError

_MOST_NUMBERED_CLASSES = 100
_FEWEST_ROWS_A_CLASS = 5


def settle(series: Series, options: ShardOptions, say: Findings) -> tuple[Series, Label]:
    """Returns the label column (no row missing) as it is stored, and its description.

    Raises:
      UsageError: one value only, or values that `--label-kind` does not fit.
    """
    if series.shape:
        raise UsageError(f"label {series.name} is a list: a label is one value a row")
    values = series.column.values
    distinct = np.unique(values)
    if len(distinct) < 2:
        shown = series.words[0].decode() if series.words is not None else f"{distinct[0]:g}"
        raise UsageError(
            f"label {series.name} has one value ({shown}) in all {len(values):,} rows: there is "
            "nothing to learn"
        )
    is_whole = series.dtype == "int64" or (
        series.dtype == "float32" and bool((distinct == np.floor(distinct)).all())
    )
    kind = options.label_kind or _infer(series, len(distinct), is_whole)
    _check(series, kind, len(distinct), is_whole)
    if kind == "regression":
        return series, Label(name=series.name, kind=kind)
    if series.words is not None:
        classes = tuple(word.decode() for word in series.words)
        return series, Label(name=series.name, kind=kind, classes=classes)
    if series.dtype == "float32":
        say.note(f"label {series.name} is stored as int64: its values are whole")
        whole = replace(series.column, values=values.astype(np.int64))
        series = replace(series, dtype="int64", column=whole)
    numbers = tuple(int(value) for value in distinct)
    return series, Label(name=series.name, kind=kind, classes=numbers)


def _infer(series: Series, distinct: int, is_whole: bool) -> LabelKind:
    if series.words is not None:
        return "binary" if distinct == 2 else "multiclass"
    if distinct == 2 and is_whole:
        return "binary"
    few = distinct <= min(_MOST_NUMBERED_CLASSES, len(series.column.values) / _FEWEST_ROWS_A_CLASS)
    return "multiclass" if series.dtype == "int64" and few else "regression"


def _check(series: Series, kind: LabelKind, distinct: int, is_whole: bool) -> None:
    named = f"--label-kind {kind}: label {series.name}"
    if kind == "regression" and series.words is not None:
        raise UsageError(f"{named} is text: regression needs numbers")
    if kind == "binary" and distinct != 2:
        raise UsageError(f"{named} has {distinct:,} values: binary needs two")
    if kind != "regression" and series.words is None and not is_whole:
        raise UsageError(f"{named} has fractions: classes are text or whole numbers")


def missing_rows(series: Series | None, options: ShardOptions, rows: int, say: Findings) -> Series:
    """Checks that the label is there; `--drop-missing-label` admits rows without.

    Raises:
      UsageError: no value at all, or missing ones that nobody allowed.
    """
    if series is None:
        raise UsageError(f"label {options.label} has no value in any of the {rows:,} rows")
    missing = int(series.missing.sum())
    if missing and not options.drop_missing_label:
        raise UsageError(
            f"label {series.name} is missing in {missing:,} of {rows:,} rows: mend them, or leave "
            "them out with --drop-missing-label"
        )
    if missing:
        say.drop_rows(missing, f"label {series.name} is missing")
    return series
