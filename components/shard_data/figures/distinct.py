"""How many different values there are, once they are too many to keep: k smallest hashes.

`tfx_bsl` has the sketch; it is imported only when a split is that large.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from components.shard_data.figures.state import HASHES, Array


def sketch(values: Any) -> Array:
    """Returns the sketch of distinct `values`, a NumPy or Arrow array, as uint8 [bytes]."""
    import pyarrow as pa
    from tfx_bsl.sketches import KmvSketch

    kmv = KmvSketch(HASHES)
    cells = pa.array(values)
    kmv.AddValues(cells.cast(pa.binary()) if pa.types.is_large_binary(cells.type) else cells)
    return np.frombuffer(kmv.Serialize(), np.uint8)


def estimate(sketches: Sequence[Array]) -> int:
    """Returns about how many different values the sketches have seen together."""
    from tfx_bsl.sketches import KmvSketch

    first, *others = (KmvSketch.Deserialize(sketch.tobytes()) for sketch in sketches)
    for other in others:
        first.Merge(other)
    return int(first.Estimate())
