"""What kind of label a column of foreign records is, by the rules that `castell shard` has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainer.data.manifest import Feature, Label, LabelKind
from trainer.data.tally import Tally
from trainer.errors import UsageError

_MOST_NUMBERED_CLASSES = 100
_FEWEST_ROWS_A_CLASS = 5

Words = tuple[str, ...]


def describe_label(
    label: str | Label, feature: Feature, tallies: Mapping[str, Tally], where: str
) -> tuple[Label, Words | None]:
    """Returns the label, and the dictionary of its column if that is text.

    Args:
      label: its name, or what a run was trained with: then the same classes are all there may be.
      feature: its column.
      tallies: of each split.
      where: the data, for errors.

    Raises:
      UsageError: rows without label, lists, one value only, or classes that the run does not have.
    """
    name = feature.name
    if feature.shape:
        raise UsageError(f"label ({name}): the schema says it is a list, a label is one value")
    for split, tally in tallies.items():
        if tally.missing:
            raise UsageError(
                f"label {name!r} is missing in {tally.missing:,} of "
                f"{tally.missing + tally.count:,} rows of split {split!r} of {where}"
            )
    values = _values(tallies, name)
    if isinstance(label, Label):
        _check_known(label, values, where)
        return label, _dictionary(feature, label)
    if values is not None and len(values) < 2:
        shown = ", ".join(map(str, values))
        raise UsageError(f"label {name!r} has one value ({shown}) in all rows of {where}")
    described = Label(name=name, kind=(kind := _kind(feature, values, tallies)))
    if kind != "regression":
        found = values or []
        classes: Any = tuple(found if feature.dtype == "string" else [int(v) for v in found])
        described = Label(name=name, kind=kind, classes=classes)
    return described, _dictionary(feature, described)


def _values(tallies: Mapping[str, Tally], name: str) -> list[Any] | None:
    """Returns the values over all splits, sorted; None if they are too many to tell apart."""
    found: set[Any] = set()
    for tally in tallies.values():
        if tally.counts is None:
            return None
        found.update(tally.counts)
    try:
        return sorted(v.decode() if isinstance(v, bytes) else v for v in found)
    except UnicodeDecodeError:
        raise UsageError(f"label {name!r} has values that are no text (not UTF-8)") from None


def _kind(feature: Feature, values: list[Any] | None, tallies: Mapping[str, Tally]) -> LabelKind:
    if feature.dtype == "string":
        if values is None:
            raise UsageError(f"label {feature.name!r} is text of too many values to be classes")
        return "binary" if len(values) == 2 else "multiclass"
    if values is None:
        return "regression"
    if len(values) == 2 and all(float(v).is_integer() for v in values):
        return "binary"
    rows = sum(tally.count for tally in tallies.values())
    few = len(values) <= min(_MOST_NUMBERED_CLASSES, rows / _FEWEST_ROWS_A_CLASS)
    return "multiclass" if feature.dtype == "int64" and few else "regression"


def _check_known(label: Label, values: list[Any] | None, where: str) -> None:
    if label.classes is None:
        return
    known: set[Any] = set(label.classes)
    strange = [v for v in values or () if v not in known]
    if values is None or strange:
        shown = ", ".join(map(str, strange[:5])) or "too many values"
        raise UsageError(
            f"label {label.name!r} of {where} has classes that the run was not trained on: {shown}"
        )


def _dictionary(feature: Feature, label: Label) -> Words | None:
    return tuple(map(str, label.classes or ())) if feature.dtype == "string" else None
