"""The records of a shard, in either layout, framed as they stand in the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import google_crc32c
import numpy as np
import pyarrow as pa

from components.shard_data.encoding import examples
from trainer.data.blocks import Block, encode_block
from trainer.data.manifest import Feature, Layout
from trainer.data.records import frame, header, masked

# Of layout `rows`: what rows have in common is made once for all of them.
_ROWS_AT_ONCE = 1 << 16
_CRC_BYTES = 4
_CRC_TO_COME = pa.scalar(bytes(_CRC_BYTES), pa.large_binary())


def records(
    features: Sequence[Feature], rows: Block, layout: Layout, block_rows: int
) -> Iterator[tuple[bytes | bytearray, int]]:
    """Yields bytes of a shard that has these rows, and their number of records."""
    step = block_rows if layout == "blocks" else _ROWS_AT_ONCE
    for start in range(0, rows.rows, step):
        part = rows.slice(start, start + step)
        if layout == "blocks":
            yield frame(encode_block(features, part)), 1
        else:
            columns = {feature.name: part.column(feature) for feature in features}
            yield _framed(examples.encode(features, columns, part.rows)), part.rows


def _framed(rows: examples.Encoded) -> bytearray:
    """Returns what `frame` makes of each row, one after another."""
    before = examples.by_size(rows.sizes, header)
    whole = examples.joined([*before.parts, *rows.parts, _CRC_TO_COME])
    data = whole.buffers()[2].to_pybytes()
    ends = np.cumsum(before.sizes + rows.sizes + _CRC_BYTES) - _CRC_BYTES
    checksum = google_crc32c.value
    spans = zip((ends - rows.sizes).tolist(), ends.tolist(), strict=True)
    crcs = np.array([checksum(data[start:end]) for start, end in spans], np.uint32)
    framed = bytearray(data)
    places = ends[:, None] + np.arange(_CRC_BYTES)
    stored = masked(crcs).astype("<u4").view(np.uint8).reshape(-1, _CRC_BYTES)
    np.frombuffer(framed, np.uint8)[places] = stored
    return framed
