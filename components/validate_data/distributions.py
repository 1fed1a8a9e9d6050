"""Rules on distributions: drift, skew and the balance of classes."""

from __future__ import annotations

import numpy as np

from components.validate_data import chance
from components.validate_data.judge import Judge
from components.validate_data.rules import RuleName
from components.validate_data.scan import Against
from components.validate_data.tally import NumberTally, WordTally
from components.validate_data.validation import Finding
from components.validate_data.wording import percent, value, word
from trainer.data.manifest import Feature, Manifest
from trainer.data.statistics import SplitStatistics


def distance(
    judge: Judge, rule: RuleName, split: str, feature: Feature, tally: Against, name: str
) -> Finding | None:
    """Returns the finding of a column whose distribution is another than in reference `name`."""
    if isinstance(tally, NumberTally):
        found = chance.jensen_shannon(tally.bins, tally.expected.bounds[1])
        message = f"the distribution is another than in {name}"
        message += _moved(feature, tally)
    else:
        found, place, shares = _categories(tally)
        which = word(tally.known[place]) if place < len(tally.known) else "all others"
        message = f"{which}: {percent(shares[0])} of the values, {percent(shares[1])} in {name}"
    return judge.broken(rule, found, 0, feature.name, split=split, message=message)


def _moved(feature: Feature, tally: NumberTally) -> str:
    """Tells how many values are in the lower half of the reference."""
    ends, counts = tally.expected.bounds
    shares = np.cumsum(counts) / max(counts.sum(), 1)
    place = int(np.abs(shares - 0.5).argmin())
    if place == len(ends):
        return ""
    ours = float(tally.bins[: place + 1].sum()) / max(tally.values, 1)
    return (
        f": {percent(ours)} of the values are up to {value(feature, float(ends[place]))}, "
        f"where {percent(float(shares[place]))} were"
    )


def _categories(tally: WordTally) -> tuple[float, int, tuple[float, float]]:
    """Returns the largest change, the word's place, and its share here and there."""
    expected = tally.expected
    known = np.array(list((expected.words or {}).values()), np.int64)
    if expected.knows_all_words:
        # Words that the reference lacks are the business of `new_category`.
        ours, theirs = tally.counts[:-1], known
    else:
        rest = (
            max(expected.figures.count - int(known.sum()), 0) if not expected.feature.shape else 0
        )
        ours, theirs = tally.counts, np.append(known, rest)
    found, place = chance.largest_change(ours, theirs)
    shares = (float(counts[place] / max(counts.sum(), 1)) for counts in (ours, theirs))
    return found, place, (next(shares), next(shares))


def balance(
    judge: Judge, manifest: Manifest, split: str, ours: SplitStatistics, train: SplitStatistics,
    name: str,
) -> Finding | None:  # fmt: skip
    """Returns the finding of a label whose classes have other shares than in the train split."""
    label = manifest.label
    first = dict(ours.features[label.name].vocabulary or ())
    second = dict(train.features[label.name].vocabulary or ())
    classes = sorted({*first, *second})
    if label.kind == "regression" or not classes:
        return None
    counts = [np.array([c.get(k, 0) for k in classes], np.int64) for c in (first, second)]
    found, place = chance.largest_change(*counts)
    shares = [percent(float(c[place] / max(c.sum(), 1))) for c in counts]
    message = f"class {word(classes[place])}: {shares[0]} of the rows, {shares[1]} in {name}"
    return judge.broken("balance", found, 0, label.name, split=split, message=message)
