"""Thresholds and the verdict: `auc>=0.7`, `auc[carrier=AA]>=0.6`, `log_loss<=baseline+0.01`.

A figure that has no value fails its rule: what cannot be shown to hold does not hold.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

from components.evaluate_model import slices
from components.evaluate_model.evaluation import (
    Metrics,
    RuleResult,
    SliceFigures,
    Verdict,
)
from components.evaluate_model.metrics import NAMES
from trainer.data.manifest import LabelKind
from trainer.errors import UsageError, suggestion

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_RULE = re.compile(
    r"\s*(?P<metric>[A-Za-z_]\w*)\s*(?:\[(?P<column>[^=\]]+)=(?P<value>.*)\])?\s*"
    rf"(?P<compare>>=|<=|>|<)\s*(?:(?P<baseline>baseline)\s*)?(?P<number>{_NUMBER})?\s*"
)
_EXAMPLES = "'auc>=0.7', 'auc[carrier=AA]>=0.6' or 'auc>=baseline'"


@dataclass(frozen=True)
class Rule:
    """One threshold as it was written. With `baseline`, `number` is added to the baseline's."""

    written: str
    metric: str
    column: str | None
    value: str | None
    compare: str
    baseline: bool
    number: float


def parse(written: str) -> Rule:
    """Returns the rule of one --threshold; UsageError if it is not one."""
    match = _RULE.fullmatch(written)
    if match is None or not (match["baseline"] or match["number"]):
        raise UsageError(f"--threshold {written!r} is not a rule: write it like {_EXAMPLES}")
    if match["baseline"] and match["number"] and match["number"][0] not in "+-":
        raise UsageError(f"--threshold {written!r}: add or subtract, like 'auc>=baseline-0.01'")
    if match["column"] and match["baseline"]:
        raise UsageError(
            f"--threshold {written!r}: a slice is compared with a number, not with the baseline"
        )
    return Rule(
        written=written,
        metric=match["metric"],
        column=match["column"],
        value=match["value"],
        compare=match["compare"],
        baseline=bool(match["baseline"]),
        number=float(match["number"] or 0),
    )


def check(rules: Sequence[Rule], kind: LabelKind | None, *, has_baseline: bool) -> None:
    """Checks the rules against what will be measured; `kind` None: labels of any kind.

    Raises:
      UsageError: an unknown metric, or a rule on the baseline where there is none.
    """
    known = list(NAMES[kind] if kind else dict.fromkeys(chain.from_iterable(NAMES.values())))
    for rule in rules:
        if rule.metric not in known:
            near = suggestion(rule.metric, known)
            raise UsageError(
                f"--threshold {rule.written!r}: unknown metric {rule.metric!r}{near} "
                f"({kind + ' ' if kind else ''}labels have {', '.join(known)})"
            )
        if rule.baseline and not has_baseline:
            raise UsageError(
                f"--threshold {rule.written!r} needs a baseline: name it with --baseline RUN"
            )


def judge(
    rules: Sequence[Rule],
    metrics: Metrics,
    rows: int,
    parts: Sequence[SliceFigures] = (),
    baseline: Metrics | None = None,
) -> Verdict:
    """Returns the verdict on the figures of the whole split and of its slices."""
    results = tuple(_apply(rule, metrics, rows, parts, baseline or {}) for rule in rules)
    return Verdict(passed=all(result.passed for result in results), rules=results)


def _apply(
    rule: Rule, metrics: Metrics, rows: int, parts: Sequence[SliceFigures], baseline: Metrics
) -> RuleResult:
    reason = None
    if rule.column is not None:
        part = slices.find(parts, {rule.column: rule.value or ""})
        metrics, rows = (part.metrics, part.rows) if part else ({}, 0)
        if part is None:
            reason = f"no row has {rule.column}={rule.value}"
    value = metrics.get(rule.metric)
    bound: float | None = rule.number
    if rule.baseline:
        theirs = baseline.get(rule.metric)
        bound = None if theirs is None else theirs + rule.number
    if value is None:
        reason = reason or f"{rule.metric} has no value on these rows"
    elif bound is None:
        reason = f"{rule.metric} of the baseline has no value"
    passed = value is not None and bound is not None and _COMPARE[rule.compare](value, bound)
    return RuleResult(
        rule=rule.written, value=value, bound=bound, passed=passed, rows=rows, reason=reason
    )
