"""Rules on single values: missing ones, those out of range, and categories that are new."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from components.validate_data import chance
from components.validate_data.judge import Judge
from components.validate_data.reference import Expected, Reference
from components.validate_data.rules import RuleName
from components.validate_data.scan import ColumnScan, SplitScan
from components.validate_data.tally import MOST_IDS, NumberTally, Sample, WordTally
from components.validate_data.validation import Finding
from components.validate_data.wording import percent, value, word

_MOST_NAMED = 5


def findings(
    judge: Judge, split: SplitScan, column: ColumnScan, reference: Reference | None
) -> Iterator[Finding | None]:
    """Yields what is wrong with the rows of one column, against the reference of its split."""
    name, missing = column.feature.name, column.missing
    share = missing.rows / max(split.rows, 1)
    rows = {"split": split.split, "rows": missing.rows, "row_ids": missing.ids}
    yield judge.broken(
        "missing", share, 0, name, message=f"{percent(share)} of the rows have no value", **rows
    )
    expected = reference.columns.get(name) if reference else None
    if reference is None or expected is None:
        return
    yield _missing_change(judge, split, column, reference, expected)
    tally = column.against.get(reference.name)
    if isinstance(tally, NumberTally):
        yield _outside(judge, split.split, tally, reference)
    elif isinstance(tally, WordTally) and expected.knows_all_words:
        yield _new_category(judge, split.split, tally, reference)


def _missing_change(
    judge: Judge, split: SplitScan, column: ColumnScan, reference: Reference, expected: Expected
) -> Finding | None:
    was = expected.figures.missing / max(reference.rows, 1)
    share = column.missing.rows / max(split.rows, 1)
    if not split.rows or not reference.rows:
        return None
    return judge.broken(
        "missing_change",
        abs(share - was),
        chance.between_shares(share, split.rows, was, reference.rows),
        column.feature.name,
        split=split.split,
        message=f"{percent(share)} of the rows have no value, {percent(was)} in {reference.name}",
        rows=column.missing.rows if share > was else None,
        row_ids=column.missing.ids if share > was else (),
    )


@dataclass(frozen=True)
class _Side:
    """Values beyond a bound of the reference: `rank` says the how-manieth value that bound is."""

    sample: Sample
    rank: int
    extreme: float
    words: str


def _outside(judge: Judge, split: str, tally: NumberTally, reference: Reference) -> Finding | None:
    """Values beyond the range; if that is not so, values where the reference has few."""
    feature, figures = tally.expected.feature, tally.expected.figures
    low, high = value(feature, figures.min or 0.0), value(feature, figures.max or 0.0)
    found = _beyond(
        judge, "out_of_range", split, tally,
        [
            _Side(tally.below, 1, tally.smallest, f"below {low}, the smallest in {reference.name}"),
            _Side(tally.above, 1, tally.largest, f"above {high}, the largest in {reference.name}"),
        ],
    )  # fmt: skip
    if found is not None:
        return found
    (low_tail, low_rank), (high_tail, high_rank) = tally.expected.tails

    def few(rank: int) -> str:
        share = percent((rank - 1) / max(tally.expected.total, 1))
        return f"where {reference.name} has {share}"

    below = f"below {value(feature, low_tail)}, {few(low_rank)}"
    above = f"above {value(feature, high_tail)}, {few(high_rank)}"
    return _beyond(
        judge, "outlier", split, tally,
        [
            _Side(tally.low_tail, low_rank, tally.smallest, below),
            _Side(tally.high_tail, high_rank, tally.largest, above),
        ],
    )  # fmt: skip


def _beyond(
    judge: Judge, rule: RuleName, split: str, tally: NumberTally, sides: Sequence[_Side]
) -> Finding | None:
    """Returns the finding of the sides that are broken, the larger one first."""
    feature = tally.expected.feature
    found = []
    for side in sides:
        if not side.sample.values:
            continue
        share = side.sample.values / tally.values
        allowed = chance.beyond(side.rank, tally.expected.total, tally.values) / tally.values
        message = (
            f"{percent(share)} of the values are {side.words}; "
            f"they reach {value(feature, side.extreme)}"
        )
        broken = judge.broken(
            rule, share, allowed, feature.name,
            split=split, message=message, rows=side.sample.rows, row_ids=side.sample.ids,
        )  # fmt: skip
        if broken is not None:
            found.append(broken)
    if len(found) < 2:
        return found[0] if found else None
    first, second = sorted(found, key=lambda f: -f.value)
    return first.model_copy(
        update={
            "value": first.value + second.value,
            "message": f"{first.message}; {second.message}",
            "rows": (first.rows or 0) + (second.rows or 0),
            "row_ids": tuple(dict.fromkeys(first.row_ids + second.row_ids))[:MOST_IDS],
        }
    )


def _new_category(
    judge: Judge, split: str, tally: WordTally, reference: Reference
) -> Finding | None:
    if not tally.new.values:
        return None
    share = tally.new.values / tally.values
    ranked = sorted(tally.new_words.items(), key=lambda item: (-item[1], item[0]))
    named = ", ".join(f"{word(text)} ({count:,})" for text, count in ranked[:_MOST_NAMED])
    more = ", …" if len(ranked) > _MOST_NAMED else ""
    return judge.broken(
        "new_category",
        share,
        chance.unseen(tally.expected.singles, tally.expected.figures.count, tally.values),
        tally.expected.feature.name,
        split=split,
        message=f"{percent(share)} of the values are not in {reference.name}: {named}{more}",
        rows=tally.new.rows,
        row_ids=tally.new.ids,
    )
