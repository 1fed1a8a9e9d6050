"""The shard on the disk: framed records, counted and hashed as they are written."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from trainer.data.compressed import Compression, packing
from trainer.data.manifest import Shard
from trainer.data.records import frame

# A call for each of a million small records would cost more than their bytes.
_WRITTEN_AT_ONCE = 1 << 18


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
            held: list[bytes] = []
            held_bytes = 0
            for payload in payloads:
                held.append(frame(payload))
                held_bytes += len(payload)
                count += 1
                if held_bytes >= _WRITTEN_AT_ONCE:
                    take(b"".join(held))
                    held, held_bytes = [], 0
            take(b"".join(held))
    return Shard(path=path, rows=rows, records=count, bytes=size, sha256=digest.hexdigest())
