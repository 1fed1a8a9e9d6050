"""The label: what kind it is, which classes it has, and what makes it unusable."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from components.shard_data.findings import Findings
from components.shard_data.options import ShardOptions
from components.shard_data.types.plan import Plan
from components.shard_data.types.profile import MOST_CLASSES
from trainer.data.manifest import Label, LabelKind
from trainer.errors import UsageError

_MOST_NUMBERED_CLASSES = 100
_FEWEST_ROWS_A_CLASS = 5


@dataclass(frozen=True)
class Values:
    """The label's values over all kept rows.

    distinct: sorted, different; numbers, or words. None: more than a classifier has.
    """

    rows: int
    distinct: npt.NDArray[Any] | tuple[str, ...] | None

    @property
    def many(self) -> int:
        """How many there are, if that is known."""
        return MOST_CLASSES + 1 if self.distinct is None else len(self.distinct)


def settle(plan: Plan, values: Values, options: ShardOptions, say: Findings) -> tuple[Plan, Label]:
    """Returns how the label column (no row missing) is stored, and its description.

    Raises:
      UsageError: one value only, or values that `--label-kind` does not fit.
    """
    if plan.shape:
        raise UsageError(f"label {plan.name} is a list: a label is one value a row")
    if plan.kind == "bytes":
        raise UsageError(f"label {plan.name} holds bytes that are not text")
    distinct = values.distinct
    if distinct is not None and len(distinct) < 2:
        value = distinct[0]
        shown = value if isinstance(value, str) else f"{value:g}"
        raise UsageError(
            f"label {plan.name} has one value ({shown}) in all {values.rows:,} rows: there is "
            "nothing to learn"
        )
    is_text = plan.dtype == "string"
    is_whole = plan.dtype == "int64" or (
        plan.dtype == "float32"
        and distinct is not None
        and bool((np.asarray(distinct) == np.floor(np.asarray(distinct))).all())
    )
    kind = options.label_kind or _infer(plan, values, is_whole=is_whole)
    _check(plan, kind, values.many, is_whole=is_whole)
    if kind == "regression":
        return plan, Label(name=plan.name, kind=kind)
    if distinct is None:
        raise UsageError(
            f"label {plan.name} has more than {MOST_CLASSES:,} different values: they are no "
            "classes; a number is predicted with --label-kind regression"
        )
    if is_text:
        return plan, Label(name=plan.name, kind=kind, classes=tuple(map(str, distinct)))
    if plan.dtype == "float32":
        say.note(f"label {plan.name} is stored as int64: its values are whole")
        plan = replace(plan, kind="int64")
    return plan, Label(name=plan.name, kind=kind, classes=tuple(int(v) for v in distinct))


def _infer(plan: Plan, values: Values, *, is_whole: bool) -> LabelKind:
    if plan.dtype == "string":
        return "binary" if values.many == 2 else "multiclass"
    if values.many == 2 and is_whole:
        return "binary"
    most = min(_MOST_NUMBERED_CLASSES, values.rows / _FEWEST_ROWS_A_CLASS)
    return "multiclass" if plan.dtype == "int64" and values.many <= most else "regression"


def _check(plan: Plan, kind: LabelKind, many: int, *, is_whole: bool) -> None:
    named = f"--label-kind {kind}: label {plan.name}"
    is_text = plan.dtype == "string"
    if kind == "regression" and is_text:
        raise UsageError(f"{named} is text: regression needs numbers")
    if kind == "binary" and many != 2:
        raise UsageError(f"{named} has {many:,} values: binary needs two")
    if kind != "regression" and not is_text and not is_whole:
        raise UsageError(f"{named} has fractions: classes are text or whole numbers")
