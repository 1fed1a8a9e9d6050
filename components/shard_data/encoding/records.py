"""The records of a shard, in either layout."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from components.shard_data.encoding import examples
from trainer.data.blocks import Column, encode_block
from trainer.data.manifest import Feature, Layout

# Of layout `rows`: each distinct value is encoded once for all of them.
_ROWS_AT_ONCE = 1 << 16


def records(
    features: Sequence[Feature],
    columns: Mapping[str, Column],
    row_id: npt.NDArray[np.int64],
    layout: Layout,
    block_rows: int,
) -> Iterator[bytes]:
    """Yields the payloads of one shard whose rows, in order, are `columns`."""
    step = block_rows if layout == "blocks" else _ROWS_AT_ONCE
    for start in range(0, len(row_id), step):
        end = min(start + step, len(row_id))
        part = {feature.name: _slice(columns[feature.name], start, end) for feature in features}
        if layout == "rows":
            yield from examples.encode(features, part, end - start)
        else:
            yield encode_block(features, part, row_id[start:end])


def _slice(column: Column, start: int, end: int) -> Column:
    """Rows start to end, without copies."""
    valid = None if column.valid is None else column.valid[start:end]
    if column.splits is None:
        return Column(column.values[start:end], valid=valid)
    splits = column.splits[start : end + 1]
    return Column(column.values[splits[0] : splits[-1]], splits - splits[0], valid)
