"""`--verify`: a dataset's shards, read back and compared with what stands beside them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

from components.shard_data import schema
from components.shard_data.progress import Progress, Report
from trainer.data.blocks import Block, decode_block
from trainer.data.compressed import unpacked
from trainer.data.example import Example
from trainer.data.manifest import Manifest, Shard
from trainer.data.records import DamagedRecord, read_records
from trainer.errors import CastellError

Seen = npt.NDArray[np.bool_]


def verify(root: Path, manifest: Manifest, report: Report = lambda line: None) -> None:
    """Reads every shard under `root` again.

    Raises:
      CastellError: a checksum, a count or the schema differs, or a row stands twice.
    """
    described = schema.to_text(manifest.features, manifest.label)
    if (root / "schema.pbtxt").read_text("utf-8") != described:
        raise CastellError("verify: schema.pbtxt does not describe the manifest's columns")
    shards = [shard for split in manifest.splits.values() for shard in split.shards]
    progress = Progress("verified", len(shards), report)
    seen: Seen = np.zeros(manifest.source_rows or manifest.rows, bool)
    for shard in shards:
        _check(root / shard.path, shard, manifest, seen)
        progress.add(shard.bytes, shard.rows, shard.path)


def _check(path: Path, shard: Shard, manifest: Manifest, seen: Seen) -> None:
    records = rows = 0
    try:
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != shard.sha256:
                raise CastellError(f"verify: {shard.path} reads back with another checksum")
            file.seek(0)
            for payload in read_records(unpacked(file, manifest.compression)):
                records += 1
                if manifest.layout == "blocks":
                    block = decode_block(manifest.features, payload)
                    rows += block.rows
                    _see(block, seen, shard)
                else:
                    Example.FromString(payload)
                    rows += 1
    except DamagedRecord as error:
        raise CastellError(f"verify: {shard.path}: {error}") from None
    except OSError as error:
        raise CastellError(f"verify: {shard.path}: {error.strerror or error}") from None
    if (records, rows) != (shard.records, shard.rows):
        raise CastellError(
            f"verify: {shard.path} reads back {rows:,} rows in {records:,} records, written were "
            f"{shard.rows:,} in {shard.records:,}"
        )


def _see(block: Block, seen: Seen, shard: Shard) -> None:
    """Marks the rows of a block; each stands in one place of one shard."""
    row_id = block.row_id
    if (row_id < 0).any() or (row_id >= len(seen)).any():
        raise CastellError(f"verify: {shard.path} has a row that no source had")
    if seen[row_id].any() or len(np.unique(row_id)) < len(row_id):
        raise CastellError(f"verify: {shard.path} has a row that stands elsewhere, too")
    seen[row_id] = True
