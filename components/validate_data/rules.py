"""What is asked of data, how strictly, and how a person changes it: `--rule 'missing<=0.1'`.

A rule has a level (`block` stops the pipeline, `warn` is only told, `off`) and mostly a threshold
for its value; either is set for all columns or for one, and the most specific setting counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from trainer.errors import UsageError, suggestion

Level = Literal["block", "warn", "off"]
LEVELS: tuple[Level, ...] = ("block", "warn", "off")
RuleName = Literal[
    "schema", "missing", "missing_change", "constant", "new_category", "out_of_range", "outlier",
    "drift", "skew", "balance", "leakage", "duplicate",
]  # fmt: skip


class Setting(BaseModel):
    """How strictly a rule holds. `threshold`: the largest value that passes; None: it has none."""

    model_config = ConfigDict(frozen=True)

    level: Level
    threshold: float | None = Field(None, ge=0, le=1)


@dataclass(frozen=True)
class Kind:
    """A rule as it is by default, and what its value means."""

    default: Setting
    meaning: str


def _kind(level: Level, threshold: float | None, meaning: str) -> Kind:
    return Kind(Setting(level=level, threshold=threshold), meaning)


# In the order in which findings are told.
KINDS: dict[RuleName, Kind] = {
    "schema": _kind(
        "block", None, "a column or the label is missing, new or of another kind than before"
    ),
    "out_of_range": _kind(
        "block", 0.001, "share of values below the smallest or above the largest of the reference"
    ),
    "outlier": _kind(
        "block", 0.01, "share of values outside the middle 99.8 % of the reference, on one side"
    ),
    "new_category": _kind("block", 0.001, "share of values that the reference does not have"),
    "missing_change": _kind(
        "block", 0.05, "change of the share of rows without a value against the reference"
    ),
    "missing": _kind("warn", 0.5, "share of rows without a value"),
    "drift": _kind(
        "block", 0.1, "distance from the baseline: largest change of a category's share, or "
        "Jensen-Shannon distance of numbers"
    ),
    "skew": _kind("warn", 0.1, "the same distance between the train split and another"),
    "balance": _kind(
        "warn", 0.05, "largest change of a class's share between the train split and another"
    ),
    "leakage": _kind(
        "warn", 0.999, "how well one feature alone tells the label: AUC, share of the errors of "
        "guessing that it avoids, or rank correlation"
    ),
    "duplicate": _kind("warn", 0.01, "share of a split's rows that are in the train split, too"),
    "constant": _kind("warn", None, "a column has one value, or none, in all training rows"),
}  # fmt: skip

_RULE = re.compile(
    r"\s*(?P<name>[A-Za-z_]\w*)\s*(?:\[(?P<column>.+)\])?\s*"
    r"(?:<=\s*(?P<threshold>\S+)|=\s*(?P<level>\S+))\s*"
)
_EXAMPLES = "'missing<=0.1', 'drift[dep_delay]<=0.2' or 'new_category=warn'"


@dataclass(frozen=True)
class Change:
    """One `--rule`: a threshold or a level, of all columns or of one."""

    written: str
    name: RuleName
    column: str | None
    threshold: float | None = None
    level: Level | None = None


def parse(written: str) -> Change:
    """Returns what one `--rule` says; UsageError if it says nothing that is known."""
    match = _RULE.fullmatch(written)
    if match is None:
        raise UsageError(f"--rule {written!r} is not a rule: write it like {_EXAMPLES}")
    name = _name(written, match["name"])
    if match["level"] is not None:
        return Change(written, name, match["column"], level=_level(written, match["level"]))
    if KINDS[name].default.threshold is None:
        raise UsageError(
            f"--rule {written!r}: {name} has no threshold, only a level: '{name}=warn'"
        )
    return Change(written, name, match["column"], threshold=_share(written, match["threshold"]))


def _name(written: str, name: str) -> RuleName:
    for known in KINDS:
        if known == name:
            return known
    near = suggestion(name, list(KINDS))
    raise UsageError(
        f"--rule {written!r}: unknown rule {name!r}{near} (there are {', '.join(KINDS)})"
    )


def _level(written: str, text: str) -> Level:
    for level in LEVELS:
        if level == text:
            return level
    raise UsageError(
        f"--rule {written!r}: {text!r} is no level (block, warn, off); a threshold is set with <="
    )


def _share(written: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise UsageError(f"--rule {written!r}: {text!r} is not a number from 0 to 1")
    return value


class Rules:
    """All settings: the defaults, changed by what was written, later ones last."""

    def __init__(self, written: Sequence[str] = ()) -> None:
        self._changes = [parse(text) for text in written]

    def check_columns(self, columns: Sequence[str]) -> None:
        """Raises UsageError if a rule names a column that is not among `columns`."""
        for change in self._changes:
            if change.column is not None and change.column not in columns:
                near = suggestion(change.column, list(columns))
                raise UsageError(
                    f"--rule {change.written!r}: the data has no column {change.column!r}{near}"
                )

    def of(self, name: RuleName, column: str | None = None, *, eased: bool = False) -> Setting:
        """Returns how strictly a rule holds for a column; None: for what concerns no column.

        eased: what would block only warns, unless a level was written.
        """
        setting = KINDS[name].default
        if eased and setting.level == "block":
            setting = setting.model_copy(update={"level": "warn"})
        fitting = [c for c in self._changes if c.name == name and c.column in (None, column)]
        for change in sorted(fitting, key=lambda c: c.column is not None):
            if change.level is not None:
                setting = setting.model_copy(update={"level": change.level})
            if change.threshold is not None:
                setting = setting.model_copy(update={"threshold": change.threshold})
        return setting

    def described(self) -> dict[str, Setting]:
        """Returns every setting that counts: `drift` for all columns, `drift[delay]` for one."""
        found: dict[str, Setting] = {name: self.of(name) for name in KINDS}
        for change in self._changes:
            if change.column is not None:
                found[f"{change.name}[{change.column}]"] = self.of(change.name, change.column)
        return found
