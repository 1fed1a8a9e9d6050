"""What identifies a source: its bytes, so that the same ones make no dataset again."""

from __future__ import annotations

import hashlib
from typing import Any

from components.shard_data.inputs.find import SourceFile
from trainer import files
from trainer.errors import UsageError

_MANY_BYTES = 1 << 22


def fingerprint(file: SourceFile) -> dict[str, Any]:
    """Returns path, size in bytes and sha256 of a file.

    Raises:
      UsageError: it cannot be read.
    """
    digest, size = hashlib.sha256(), 0
    try:
        with files.open_binary(file.path) as stream:
            while chunk := stream.read(_MANY_BYTES):
                digest.update(chunk)
                size += len(chunk)
    except files.read_errors() as error:
        raise UsageError(f"cannot read {file.path}: {files.reason(error)}") from None
    return {"path": file.path, "bytes": size, "sha256": digest.hexdigest()}
