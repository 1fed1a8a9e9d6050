"""Dictionary-coded text: how often each word of the dictionary is there, always exact."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from components.shard_data.figures.state import Array, Part
from trainer.data.statistics import LARGEST_VOCABULARY, FeatureStatistics


def part(codes: Array, count: int, missing: int, words: int) -> Part:
    """Returns what one shard says. codes: int32 [values that are there] of a number of `words`."""
    found = np.bincount(codes, minlength=words)
    return Part({"count": count, "missing": missing}, {"times": found.astype(np.int64)})


def figures(parts: Sequence[Part], dictionary: Sequence[str]) -> FeatureStatistics:
    """Returns the figures of all shards together; `dictionary` is sorted."""
    times = np.stack([p.arrays["times"] for p in parts]).sum(axis=0)
    # Codes are in the order of the words, so a stable sort leaves ties in that order.
    order = np.argsort(-times, kind="stable")
    seen = order[times[order] > 0]
    return FeatureStatistics(
        count=sum(p.facts["count"] for p in parts),
        missing=sum(p.facts["missing"] for p in parts),
        distinct=len(seen),
        vocabulary=tuple((dictionary[i], int(times[i])) for i in seen[:LARGEST_VOCABULARY]),
    )
