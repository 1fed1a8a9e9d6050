"""What one piece says about a column; what many pieces say is the sum."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

# Text with more values than this is stored as it is: a code then saves little, and the
# dictionary in the manifest would be read by every worker.
LARGEST_DICTIONARY = 4096
# A label's classes are all kept, up to a number that no classifier has.
MOST_CLASSES = 1 << 20


class Mark(BaseModel):
    """How many rows are of some kind, and the first of them: its text, piece and row there."""

    model_config = ConfigDict(frozen=True)

    rows: int = 0
    text: str = ""
    piece: int = -1
    row: int = -1


NONE = Mark()


class Profile(BaseModel):
    """One column in one piece, or in many.

    kind: "text" (written; its meaning is open), "string", "bytes", "int64", "float64", "null", or
      what whole numbers mean: "bool", "date", "timestamp", "time", "duration".
    shape: () scalar, (k,) fixed-size list, (None,) variable-length list.
    declared: the arrow type, for errors. origin: the first file that says so.
    marks: rows of some kind by name, see `look`.
    words: the distinct texts; None: more than are kept.
    largest: of the absolute numbers.
    """

    model_config = ConfigDict(frozen=True)

    kind: str
    shape: tuple[int | None, ...] = ()
    declared: str = ""
    origin: str = ""
    marks: dict[str, Mark] = {}
    words: tuple[str, ...] | None = ()
    largest: float = 0.0
    notes: tuple[str, ...] = ()

    def rows(self, mark: str) -> int:
        """Rows of a kind."""
        return self.marks.get(mark, NONE).rows

    def first(self, mark: str) -> Mark:
        """The first row of a kind."""
        return self.marks.get(mark, NONE)


def add(profiles: Sequence[Profile], most_words: int) -> Profile:
    """Returns the sum of profiles of one kind and shape, in the order of their pieces."""
    marks: dict[str, Mark] = {}
    for profile in profiles:
        for name, mark in profile.marks.items():
            there = marks.get(name, NONE)
            first = there if there.rows else mark
            marks[name] = first.model_copy(update={"rows": there.rows + mark.rows})
    return profiles[0].model_copy(
        update={
            "marks": marks,
            "words": _union([profile.words for profile in profiles], most_words),
            "largest": max(profile.largest for profile in profiles),
            "notes": tuple(dict.fromkeys(note for p in profiles for note in p.notes)),
        }
    )


def _union(words: Sequence[tuple[str, ...] | None], most: int) -> tuple[str, ...] | None:
    found: set[str] = set()
    for some in words:
        if some is None:
            return None
        found.update(some)
        if len(found) > most:
            return None
    return tuple(sorted(found))
