"""The shard on the disk: framed records, counted and hashed as they are written."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from trainer.data.compressed import Compression, packing
from trainer.data.manifest import Shard
from trainer.data.records import frame


def write(
    root: Path,
    path: str,
    rows: int,
    payloads: Iterable[bytes],
    compression: Compression | None = None,
) -> Shard:
    """Writes the records to `root / path` and returns their entry for the manifest."""
    digest, size, count = hashlib.sha256(), 0, 0
    target = root / path
    target.parent.mkdir(exist_ok=True)
    with target.open("wb") as file:

        def put(data: bytes) -> None:
            nonlocal size
            file.write(data)
            digest.update(data)
            size += len(data)

        with packing(put, compression) as take:
            for payload in payloads:
                take(frame(payload))
                count += 1
    return Shard(path=path, rows=rows, records=count, bytes=size, sha256=digest.hexdigest())
