"""The shard on the disk: framed records, counted and hashed as they are written."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from trainer.data.compressed import Compression, packing
from trainer.data.manifest import Shard


def write(
    root: Path,
    path: str,
    rows: int,
    records: Iterable[tuple[bytes | bytearray, int]],
    compression: Compression | None = None,
) -> Shard:
    """Writes the records (bytes, how many they are) to `root / path`; returns the shard's entry."""
    digest, size, count = hashlib.sha256(), 0, 0
    target = root / path
    target.parent.mkdir(exist_ok=True)
    with target.open("wb") as file:

        def put(data: bytes | bytearray) -> None:
            nonlocal size
            file.write(data)
            digest.update(data)
            size += len(data)

        with packing(put, compression) as take:
            for data, number in records:
                take(data)
                count += number
    return Shard(path=path, rows=rows, records=count, bytes=size, sha256=digest.hexdigest())
