"""When a rule is broken, and what is told of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from components.validate_data.rules import RuleName, Rules
from components.validate_data.validation import Finding


@dataclass(frozen=True)
class Judge:
    """Makes findings of broken rules, at the level that the rule has for the column.

    eased: warn where a rule would block by default.
    """

    rules: Rules
    eased: bool = False

    def broken(
        self, rule: RuleName, found: float, allowed: float, column: str | None, **facts: Any
    ) -> Finding | None:
        """Returns a finding if `found` is above the threshold and what is `allowed` for luck."""
        setting = self.rules.of(rule, column, eased=self.eased)
        threshold = setting.threshold
        if setting.level == "off" or found <= (threshold or 0) + allowed:
            return None
        return Finding(
            rule=rule, level=setting.level, column=column, value=float(found),
            threshold=threshold, **facts,
        )  # fmt: skip
