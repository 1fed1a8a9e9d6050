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
    # Notes with a figure, which grows where findings are merged: words before and after → figure.
    counts: dict[tuple[str, str], int] = field(default_factory=dict)
    peaks: dict[tuple[str, str], int] = field(default_factory=dict)

    def note(self, text: str) -> None:
        """Says something once."""
        if text not in self.notes:
            self.notes.append(text)

    def count(self, before: str, figure: int, after: str) -> None:
        """Says how many of something there are; the same words add up."""
        self.counts[before, after] = self.counts.get((before, after), 0) + figure

    def most(self, before: str, figure: int, after: str) -> None:
        """Says how large something is at most; of the same words the largest figure stays."""
        self.peaks[before, after] = max(self.peaks.get((before, after), figure), figure)

    def add(self, other: Findings) -> None:
        """Takes over what another part of the input had to say; a column is left out once."""
        for text in other.notes:
            self.note(text)
        for entry in other.dropped:
            if entry["what"] == "rows" or entry not in self.dropped:
                self.dropped.append(entry)
        for words, figure in other.counts.items():
            self.count(words[0], figure, words[1])
        for words, figure in other.peaks.items():
            self.most(words[0], figure, words[1])

    def all_notes(self) -> list[str]:
        """The notes, those with a figure last."""
        figures = [*self.counts.items(), *self.peaks.items()]
        return self.notes + [f"{before} {figure:,} {after}" for (before, after), figure in figures]

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
        return lines + self.all_notes()
