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
    """Values beyond a bound of the reference: `rank` says the how-manieth value that bound is.

    far: how many of them are `chance.FAR` ranges away.
    """

    sample: Sample
    rank: int
    extreme: float
    words: str
    far: int = 0


def _outside(judge: Judge, split: str, tally: NumberTally, reference: Reference) -> Finding | None:
    """Values beyond the range; if that is not so, values where the reference has few."""
    feature, figures = tally.expected.feature, tally.expected.figures
    below = f"below {value(feature, figures.min or 0.0)}, the smallest in {reference.name}"
    above = f"above {value(feature, figures.max or 0.0)}, the largest in {reference.name}"
    sides = [
        _Side(tally.range.below, 1, tally.smallest, below, tally.far_below),
        _Side(tally.range.above, 1, tally.largest, above, tally.far_above),
    ]
    found = _beyond(judge, "out_of_range", split, tally, sides, tally.range.rows)
    if found is not None:
        return found
    (low_tail, low_rank), (high_tail, high_rank) = tally.expected.tails

    def few(rank: int) -> str:
        share = percent((rank - 1) / max(tally.expected.total, 1))
        return f"where {reference.name} has {share}"

    below = f"below {value(feature, low_tail)}, {few(low_rank)}"
    above = f"above {value(feature, high_tail)}, {few(high_rank)}"
    sides = [
        _Side(tally.tails.below, low_rank, tally.smallest, below),
        _Side(tally.tails.above, high_rank, tally.largest, above),
    ]
    return _beyond(judge, "outlier", split, tally, sides, tally.tails.rows)


def _beyond(
    judge: Judge, rule: RuleName, split: str, tally: NumberTally, sides: Sequence[_Side], rows: int
) -> Finding | None:
    """Returns the finding of the sides that are broken. rows: those of both sides."""
    feature = tally.expected.feature
    found = []
    for side in sides:
        if not side.sample.values:
            continue
        share = side.sample.values / tally.values
        total = tally.expected.total
        allowed = chance.beyond(side.rank, total, tally.values) / tally.values
        if side.far:  # Few are enough if they are far away: then as many of the others are allowed.
            of_far = chance.far_beyond(total, tally.values)
            allowed = min(allowed, share - (side.far - of_far) / tally.values)
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
            "rows": rows,
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
