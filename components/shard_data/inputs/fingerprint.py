"""What identifies a source: its bytes, so that the same ones make no dataset again."""

from __future__ import annotations

import hashlib
from typing import Any

from components.shard_data.inputs import bigquery
from components.shard_data.inputs.find import SourceFile
from trainer import files
from trainer.errors import UsageError

_MANY_BYTES = 1 << 22


def fingerprint(file: SourceFile, labels: str | None = None) -> dict[str, Any]:
    """Returns path, size in bytes and sha256 of a file.

    Args:
      file: a folder of images counts as one, with the number of its files.
      labels: the table that says what is on images; another one makes another dataset.

    Raises:
      UsageError: it cannot be read.
    """
    if file.path.startswith(bigquery.SCHEME):
        return bigquery.fingerprint(file.path)
    if not file.images:
        return {"path": file.path, **_file(file.path)}
    digest, size = hashlib.sha256(), 0
    for name in file.images:
        one = _file(files.join(file.path, name))
        size += one["bytes"]
        digest.update(f"{name}\0{one['sha256']}\n".encode())
    found = {"path": file.path, "files": len(file.images), "bytes": size}
    if labels is not None:
        digest.update(_file(labels)["sha256"].encode())
    return {**found, "sha256": digest.hexdigest()}


def _file(path: str) -> dict[str, Any]:
    digest, size = hashlib.sha256(), 0
    try:
        with files.open_binary(path) as stream:
            while chunk := stream.read(_MANY_BYTES):
                digest.update(chunk)
                size += len(chunk)
    except files.read_errors() as error:
        raise UsageError(f"cannot read {path}: {files.reason(error)}") from None
    return {"bytes": size, "sha256": digest.hexdigest()}
