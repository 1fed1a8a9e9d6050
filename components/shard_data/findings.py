"""What sharding has to say: notes for the reader, and what was left out and why."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import Any


def flag(name: str, value: str) -> str:
    """Returns a flag and its value to paste into a shell: `--drop 'a b'`, `--null-value=--`."""
    return f"{name}{'=' if value.startswith('-') else ' '}{shlex.quote(value)}"


@dataclass
class Findings:
    """Collected on the way; both lists end in the manifest and in the command's output."""

    notes: list[str] = field(default_factory=list)
    dropped: list[dict[str, Any]] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Says something once."""
        if text not in self.notes:
            self.notes.append(text)

    def drop_column(self, name: str, reason: str) -> None:
        """Records a column that the dataset does not have."""
        self.dropped.append({"what": "column", "name": name, "reason": reason})

    def drop_rows(self, rows: int, reason: str) -> None:
        """Records rows that the dataset does not have."""
        self.dropped.append({"what": "rows", "rows": rows, "reason": reason})

    def told(self) -> list[str]:
        """All of it as lines for a person."""
        lines = []
        for entry in self.dropped:
            what = f"column {entry['name']}" if "name" in entry else f"{entry['rows']:,} rows"
            lines.append(f"left out {what}: {entry['reason']}")
        return lines + self.notes
