"""What a check found, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from trainer.errors import UsageError


@dataclass(frozen=True)
class Finding:
    """One thing that does not fit, or is good to know.

    about: an op's type, a feature, a configuration key. says: what is wrong with it, and why. do:
    what helps. where: the line of the user's code, if known.
    """

    about: str
    says: str
    do: str
    where: str | None = None

    def __str__(self) -> str:
        place = f" in {self.where}" if self.where else ""
        return f"{self.about}{place} {self.says}: {self.do}"


@dataclass(frozen=True)
class Report:
    """problems: what keeps the run from working. notes: what does not."""

    problems: Sequence[Finding]
    notes: Sequence[Finding]

    @property
    def ready(self) -> bool:
        """Whether no problem was found."""
        return not self.problems

    def as_json(self) -> dict[str, Any]:
        """Returns {"ready", "problems", "notes"}; a finding is {"about", "says", "do", "where"}."""
        return {
            "ready": self.ready,
            "problems": [asdict(finding) for finding in self.problems],
            "notes": [asdict(finding) for finding in self.notes],
        }

    def lines(self) -> list[str]:
        """Returns one line a finding, problems first."""
        return [
            *(f"problem: {finding}" for finding in self.problems),
            *(f"note: {finding}" for finding in self.notes),
        ]

    def refuse(self, what: str) -> None:
        """Raises UsageError naming the first problem and how many there are, if there are any."""
        if self.problems:
            count = len(self.problems)
            more = f" (the first of {count} problems)" if count > 1 else ""
            raise UsageError(f"{what}: {self.problems[0]}{more}")
