"""Files that are either the old one or the new one: a temporary sibling, then `os.replace`."""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any


def write(path: str, data: bytes, *, durable: bool = True) -> None:
    """Replaces `path` by `data`; on an error the old file stays and nothing else remains.

    Args:
      path: a file; its directory must be there. One writer at a time.
      data: the whole content.
      durable: also wait until it is on the disk, so that it survives a power cut.

    Raises:
      OSError: disk full, not allowed, directory missing.
    """
    # A fixed name: a process killed in the middle leaves at most one, and the next write takes it.
    temporary = temporary_name(path)
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def write_json(path: str, value: Any, *, durable: bool = True) -> None:
    """Replaces `path` by `value` as indented JSON; see `write`."""
    write(path, (json.dumps(value, indent=2) + "\n").encode(), durable=durable)


def temporary_name(path: str) -> str:
    """Returns the hidden sibling that `write` uses."""
    directory, name = os.path.split(path)
    return os.path.join(directory, f".{name}.tmp")


def sync_directory(path: str) -> None:
    """Waits until the names in `path` (after a rename) are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
