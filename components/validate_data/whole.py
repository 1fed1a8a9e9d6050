"""Rules on a dataset as a whole: its schema, columns that say nothing, rows that stand twice."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from components.validate_data.judge import Judge
from components.validate_data.scan import SplitScan
from components.validate_data.tally import MOST_IDS
from components.validate_data.validation import Finding
from components.validate_data.wording import percent, word
from trainer.data.manifest import Feature, Manifest
from trainer.data.statistics import SplitStatistics

_MOST_NAMED = 5


def duplicate(judge: Judge, split: SplitScan, train: SplitScan) -> Finding | None:
    """Returns the finding of a split that repeats rows of the train split."""
    twice = np.isin(split.hashes, train.hashes)
    share = float(twice.mean()) if len(twice) else 0.0
    return judge.broken(
        "duplicate", share, 0, None,
        split=split.split, rows=int(twice.sum()),
        message=f"{percent(share)} of the rows are in the {train.split} split, too",
        row_ids=tuple(np.sort(split.row_id[twice])[:MOST_IDS].tolist()),
    )  # fmt: skip


def constant(judge: Judge, feature: Feature, train: SplitStatistics, split: str) -> Finding | None:
    """Returns the finding of a column that says the same in all training rows."""
    figures = train.features[feature.name]
    if train.rows < 2 or (figures.count and (figures.distinct != 1 or figures.missing)):
        return None
    message = "no training row has a value" if not figures.count else "one value in all rows"
    return judge.broken("constant", 1, 0, feature.name, split=split, message=message)


def schema(judge: Judge, ours: Manifest, theirs: Manifest, name: str) -> Iterator[Finding | None]:
    """Yields how the columns differ from those of a baseline called `name`."""
    here, there = ({f.name: f for f in m.features} for m in (ours, theirs))
    for column in dict.fromkeys([*there, *here]):
        message = None
        if column not in here:
            message = f"the column is missing: {name} has it ({_kind(there[column])})"
        elif column not in there:
            message = f"the column ({_kind(here[column])}) is new: {name} does not have it"
        elif _kind(here[column]) != _kind(there[column]):
            message = f"it holds {_kind(here[column])}, in {name} {_kind(there[column])}"
        if message:
            yield judge.broken("schema", 1, 0, column, message=message)
    if ours.label != theirs.label:
        yield judge.broken(
            "schema", 1, 0, ours.label.name,
            message=f"the label is {_told(ours)}, in {name} {_told(theirs)}",
        )  # fmt: skip


def _kind(feature: Feature) -> str:
    return feature.dtype + "".join(f"[{'?' if n is None else n}]" for n in feature.shape)


def _told(manifest: Manifest) -> str:
    label = manifest.label
    classes = ", ".join(word(str(c)) for c in (label.classes or ())[:_MOST_NAMED])
    more = ", …" if len(label.classes or ()) > _MOST_NAMED else ""
    return f"{label.name} ({label.kind}{': ' if classes else ''}{classes}{more})"
