"""Text without a dictionary: words and how often they are there, or only how long the values are.

Words are kept exactly up to `state.MOST_KEPT` rows a split; beyond it a shard keeps its most
frequent ones (`state.apart`) and an estimate of how many there are: a word that it leaves out is
there at most once in so many rows. What is no UTF-8 text, or long, is pictures and documents, not
words: of it only the lengths are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from components.shard_data.figures import distinct
from components.shard_data.figures.state import Array, Part
from trainer.data.statistics import (
    LARGEST_VOCABULARY,
    FeatureStatistics,
    Lengths,
)

# Bytes, on average.
_LONG = 256


def part(values: Array, count: int, missing: int, most: int | None) -> Part:
    """Returns what one shard says.

    Args:
      values: object array of bytes [values that are there].
      count: rows that have a value.
      missing: rows that have none.
      most: how many different words are kept; None: all.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    facts: dict[str, Any] = {"count": count, "missing": missing, "kept": "words"}
    if not len(values):
        return Part(facts)
    cells = pa.array(values, pa.large_binary())
    lengths = pc.binary_length(cells).to_numpy()
    total = int(lengths.sum())
    facts |= {
        "values": len(values), "bytes": total,
        "shortest": int(lengths.min()), "longest": int(lengths.max()),
    }  # fmt: skip
    if total > _LONG * len(values) or not _is_text(cells):
        return Part({**facts, "kept": "lengths"})
    counted = cells.value_counts()
    words, times = counted.field("values"), counted.field("counts")
    if most is None or len(words) <= most:
        return Part(facts, _flat(words, times))
    chosen = _largest(times.to_numpy(), most)
    arrays = _flat(words.take(chosen), times.take(chosen))
    return Part({**facts, "kept": "frequent"}, {**arrays, "sketch": distinct.sketch(words)})


def _largest(times: Array, most: int) -> Array:
    """Places of the largest counts; of equal ones those that came first."""
    return np.sort(np.argsort(-times, kind="stable")[:most])


def _is_text(cells: Any) -> bool:
    import pyarrow as pa

    try:
        cells.cast(pa.large_string())
    except pa.ArrowInvalid:
        return False
    return True


def _flat(words: Any, times: Any) -> dict[str, Array]:
    """The words' bytes one after another, where each ends, and how often it is there."""
    ends = np.frombuffer(words.buffers()[1], np.int64)[words.offset :][: len(words) + 1]
    data = words.buffers()[2]
    blob = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]] if data else np.zeros(0, np.uint8)
    return {
        "blob": blob,
        "ends": (ends[1:] - ends[0]).astype(np.int64),
        "times": times.to_numpy().astype(np.int64),
    }


def _words(part: Part) -> Any:
    """The words of `_flat` as an Arrow array."""
    import pyarrow as pa

    ends = part.arrays["ends"]
    offsets = np.concatenate(([0], ends)).astype(np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(part.arrays["blob"].tobytes())]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(ends), buffers)


def figures(parts: Sequence[Part]) -> FeatureStatistics:
    """Returns the figures of all shards together."""
    common: dict[str, Any] = {
        "count": sum(p.facts["count"] for p in parts),
        "missing": sum(p.facts["missing"] for p in parts),
    }
    there = [p for p in parts if "values" in p.facts]
    if not there:
        return FeatureStatistics(**common, distinct=0, vocabulary=())
    common["lengths"] = Lengths(
        min=min(p.facts["shortest"] for p in there),
        mean=sum(p.facts["bytes"] for p in there) / sum(p.facts["values"] for p in there),
        max=max(p.facts["longest"] for p in there),
    )
    kept = {p.facts["kept"] for p in there}
    if "lengths" in kept:
        return FeatureStatistics(**common)
    number, vocabulary = _counted(there)
    if kept == {"words"}:
        return FeatureStatistics(**common, distinct=number, vocabulary=vocabulary)
    return FeatureStatistics(
        **common,
        distinct=distinct.estimate([_sketch(p) for p in there]),
        vocabulary=vocabulary,
        approximate=("distinct", "vocabulary"),
    )


def _counted(parts: Sequence[Part]) -> tuple[int, tuple[tuple[str, int], ...]]:
    """Returns how many words are kept, and the most frequent of them."""
    import pyarrow as pa

    words = pa.chunked_array([_words(p) for p in parts]).combine_chunks()
    coded = words.dictionary_encode()
    summed = np.zeros(len(coded.dictionary), np.int64)
    np.add.at(summed, coded.indices.to_numpy(), np.concatenate([p.arrays["times"] for p in parts]))
    return len(summed), _ranked(coded.dictionary, summed)


def _ranked(words: Any, times: Array) -> tuple[tuple[str, int], ...]:
    """The most frequent words; ties by their bytes."""
    if len(times) > LARGEST_VOCABULARY:  # only those that may be among them, ties included
        least = np.partition(times, len(times) - LARGEST_VOCABULARY)[
            len(times) - LARGEST_VOCABULARY
        ]
        chosen = np.flatnonzero(times >= least)
        words, times = words.take(chosen), times[chosen]
    pairs = zip(words.to_pylist(), times.tolist(), strict=True)
    ranked = sorted(pairs, key=lambda pair: (-pair[1], pair[0]))[:LARGEST_VOCABULARY]
    return tuple((word.decode(), times) for word, times in ranked)


def _sketch(part: Part) -> Array:
    kept = part.arrays.get("sketch")
    return distinct.sketch(_words(part)) if kept is None else kept
