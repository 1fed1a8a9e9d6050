"""metrics.jsonl: one JSON object a line, appended; each step of a split stands there once.

A run that resumes from an earlier checkpoint passes the same steps again, so what was written
beyond that checkpoint is dropped first.
"""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Mapping
from typing import Any

from trainer.run import atomic
from trainer.run.damage import DAMAGED
from trainer.run.writers.interface import Writer


class JsonlWriter(Writer):
    """Appends {"step", "split", …} to `path`; a figure that is not finite is null.

    Args:
      path: the file; created if missing.
      resume_step: the step that training goes on from; later lines are dropped, and writes of a
        step and split that already stand there are ignored.
    """

    def __init__(self, path: str, resume_step: int = 0) -> None:
        kept = _lines_until(path, resume_step)
        self._last = {line["split"]: line["step"] for line in kept}
        atomic.write(path, b"".join(map(_encode, kept)))
        self._cut = False
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115 (closed by `close`)

    def write(self, step: int, split: str, values: Mapping[str, float]) -> None:
        """Appends one line, visible at once.

        Raises:
          OSError: disk full; a part of the line may stand there, and readers skip it.
        """
        if step <= self._last.get(split, -1):
            return
        figures = {name: _finite(value) for name, value in values.items()}
        line = _encode({"step": step, "split": split, **figures})
        # A full disk may take a part of a line without an error; the next one begins a new line.
        line = b"\n" + line if self._cut else line
        written = self._file.write(line) or 0
        self._cut = written < len(line) and (self._cut or written > 0)
        if written < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._last[split] = step

    def flush(self) -> None:
        """See `Writer`: every line is visible already."""

    def close(self) -> None:
        """See `Writer`."""
        self._file.close()


def _lines_until(path: str, step: int) -> list[dict[str, Any]]:
    """The readable lines up to `step`; the process may have been killed inside the last one."""
    if not os.path.exists(path):
        return []
    kept: list[dict[str, Any]] = []
    with open(path, "rb") as file:
        for line in file:
            try:
                content = json.loads(line)
                if content["step"] <= step and isinstance(content["split"], str):
                    kept.append(content)
            except DAMAGED:
                continue
    return kept


def _finite(value: float) -> float | int | None:
    if isinstance(value, int):
        return value
    number = float(value)
    return number if math.isfinite(number) else None


def _encode(content: dict[str, Any]) -> bytes:
    return (json.dumps(content) + "\n").encode()
