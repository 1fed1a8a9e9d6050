"""Rows → records → shard files. The bytes of a block belong to `trainer.data.blocks`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from components.shard_data import examples
from components.shard_data.series import Series
from trainer.data.blocks import encode_block, plan_storage
from trainer.data.manifest import Feature, Layout, Shard
from trainer.data.records import frame


def features_of(columns: Mapping[str, Series], label: str, layout: Layout) -> tuple[Feature, ...]:
    """Returns the manifest's columns; a text label has a dictionary however many classes."""
    features = tuple(series.feature(coded=name == label) for name, series in columns.items())
    return plan_storage(features) if layout == "blocks" else features


def records(
    features: Sequence[Feature],
    columns: Mapping[str, Series],
    row_id: npt.NDArray[np.int64],
    layout: Layout,
    block_rows: int,
) -> Iterator[bytes]:
    """Yields the payloads of one shard whose rows, in order, are `columns`."""
    if layout == "rows":
        yield from examples.encode(columns, len(row_id))
        return
    for start in range(0, len(row_id), block_rows):
        rows = np.arange(start, min(start + block_rows, len(row_id)))
        stored = {f.name: columns[f.name].take(rows).stored(f) for f in features}
        yield encode_block(features, stored, row_id[rows])


def write_shard(root: Path, path: str, rows: int, payloads: Iterable[bytes]) -> Shard:
    """Writes the records to `root / path` and returns their entry for the manifest."""
    digest, size, count = hashlib.sha256(), 0, 0
    with (root / path).open("wb") as file:
        for payload in payloads:
            record = frame(payload)
            file.write(record)
            digest.update(record)
            size += len(record)
            count += 1
    return Shard(path=path, rows=rows, records=count, bytes=size, sha256=digest.hexdigest())
