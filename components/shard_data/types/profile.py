"""What one piece says about a column; what many pieces say is the sum."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from trainer.errors import UsageError

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


class Sum:
    """What many pieces say of a column, added up one by one in their order.

    Kinds that go together become one: int and float, text and bytes, null and any.
    """

    def __init__(self, name: str, most_words: int) -> None:
        self._name = name
        self._most = most_words
        self._first = Profile(kind="null")
        self._marks: dict[str, Mark] = {}
        self._words: set[str] | None = set()
        self._largest = 0.0
        self._notes: dict[str, None] = {}

    def add(self, profile: Profile) -> None:
        """Adds what the next piece says.

        Raises:
          UsageError: it is of a type that does not go with those before.
        """
        self._unify(profile)
        for name, mark in profile.marks.items():
            there = self._marks.get(name, NONE)
            first = there if there.rows else mark
            self._marks[name] = first.model_copy(update={"rows": there.rows + mark.rows})
        if self._words is not None:
            self._words = None if profile.words is None else self._words.union(profile.words)
        if self._words is not None and len(self._words) > self._most:
            self._words = None
        self._largest = max(self._largest, profile.largest)
        self._notes.update(dict.fromkeys(profile.notes))

    def total(self) -> Profile:
        """Returns the sum."""
        return self._first.model_copy(
            update={
                "marks": self._marks,
                "words": None if self._words is None else tuple(sorted(self._words)),
                "largest": self._largest,
                "notes": tuple(self._notes),
            }
        )

    def _unify(self, other: Profile) -> None:
        one = self._first
        if one.kind == "null":
            self._first = other
        elif other.kind != "null":
            kind = _common_kind(one, other)
            if kind is None:
                raise UsageError(
                    f"column {self._name!r} is {one.declared} in {one.origin} and "
                    f"{other.declared} in {other.origin}: write both with one type"
                )
            self._first = one.model_copy(update={"kind": kind})


def _common_kind(one: Profile, other: Profile) -> str | None:
    if one.shape != other.shape:
        return None
    kinds = {one.kind, other.kind}
    if len(kinds) == 1:
        return one.kind
    if kinds == {"int64", "float64"}:
        return "float64"
    return "bytes" if kinds == {"string", "bytes"} else None
