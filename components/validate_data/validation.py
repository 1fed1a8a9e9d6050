"""`validation.json`: what was found in a dataset, by which rules, and whether it may be used."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from components.validate_data.rules import RuleName, Setting


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class Finding(_Frozen):
    """One broken rule. column, split: None where it concerns no single one.

    value: what the rule measures; threshold: what it should not exceed, None for yes-or-no rules.
    rows: how many rows it concerns, None where no rows can be told; row_ids: up to 20 of them, the
    worst first (`castell peek` tells which steps see them).
    """

    rule: RuleName
    level: Literal["block", "warn"]
    column: str | None = None
    split: str | None = None
    value: float
    threshold: float | None = None
    message: str
    rows: int | None = None
    row_ids: tuple[int, ...] = ()


class Verdict(_Frozen):
    """`passed`: no rule of level `block` is broken."""

    passed: bool
    blocked: int
    warned: int


class Baseline(_Frozen):
    """What the data was compared with. kind: a dataset, or the data that a run was trained on."""

    kind: Literal["dataset", "run"]
    path: str
    split: str
    rows: int
    fingerprint: str


class Validation(_Frozen):
    """The file. findings: those that block first, in the order of the rules.

    rules: every setting that counted, `drift` for all columns, `drift[delay]` for one. unmeasured:
    what could not be compared, and why.
    """

    data: str
    fingerprint: str
    label: str
    created: str
    splits: dict[str, int]
    baseline: Baseline | None
    verdict: Verdict
    findings: tuple[Finding, ...]
    rules: dict[str, Setting]
    unmeasured: tuple[str, ...] = ()
    format_version: Literal[1] = 1
