"""`--verify`: what was written, read back and compared with the manifest."""

from __future__ import annotations

import hashlib
from pathlib import Path

from trainer.data.blocks import decode_block
from trainer.data.compressed import unpacked
from trainer.data.example import Example
from trainer.data.manifest import Manifest, Shard
from trainer.data.records import DamagedRecord, read_records
from trainer.errors import CastellError


def verify(root: Path, manifest: Manifest) -> None:
    """Reads every shard under `root` again.

    Raises:
      CastellError: a checksum or a count differs, or a row stands twice: the disk, or we, erred.
    """
    seen: set[int] = set()
    for split in manifest.splits.values():
        for shard in split.shards:
            _check(root / shard.path, shard, manifest, seen)
    if manifest.layout == "blocks" and len(seen) != manifest.rows:
        raise CastellError(f"verify: {manifest.rows:,} rows were written, {len(seen):,} differ")


def _check(path: Path, shard: Shard, manifest: Manifest, seen: set[int]) -> None:
    if hashlib.sha256(path.read_bytes()).hexdigest() != shard.sha256:
        raise CastellError(f"verify: {shard.path} reads back with another checksum")
    records = rows = 0
    try:
        with path.open("rb") as file:
            for payload in read_records(unpacked(file, manifest.compression)):
                records += 1
                if manifest.layout == "blocks":
                    block = decode_block(manifest.features, payload)
                    rows += block.rows
                    seen.update(block.row_id.tolist())
                else:
                    Example.FromString(payload)
                    rows += 1
    except DamagedRecord as error:
        raise CastellError(f"verify: {shard.path}: {error}") from None
    if (records, rows) != (shard.records, shard.rows):
        raise CastellError(
            f"verify: {shard.path} reads back {rows:,} rows in {records:,} records, written were "
            f"{shard.rows:,} in {shard.records:,}"
        )
