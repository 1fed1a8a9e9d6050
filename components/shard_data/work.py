"""The work directory: what one phase leaves for the next.

Files are named after the piece that they are of. A result appears whole or not at all, so a run
that was killed is taken up where it was: pieces whose `scan` is there are not read again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

# Rows of a piece that are kept, by their place in it: a column beside those of the source.
ROW = "\0row"
ROW_ID = "\0row_id"
KEY = "\0key"


@dataclass(frozen=True)
class Work:
    """Where things lie. `root` is a directory that all processes reach."""

    root: str

    def path(self, phase: str, piece: int, suffix: str) -> Path:
        """Returns the file of a phase and piece, in a directory that is there."""
        folder = Path(self.root, phase)
        folder.mkdir(exist_ok=True)
        return folder / f"{piece:06d}{suffix}"

    def unpacked(self, file: int) -> Path:
        """Returns the directory for what a source file has inside."""
        folder = Path(self.root, "unpacked", f"{file:06d}")
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def write_text(path: Path, text: str) -> None:
    """Writes a file that is there as a whole, or not."""
    partial = path.with_suffix(".partial")
    partial.write_text(text, "utf-8")
    partial.replace(path)


def write_batches(path: Path, batches: list[pa.RecordBatch]) -> None:
    """Writes arrow batches of one schema, each to be read by its number."""
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def read_batch(path: Path, number: int) -> pa.RecordBatch:
    """Returns one batch; its memory is the file's."""
    with pa.memory_map(str(path)) as file:
        return pa.ipc.open_file(file).get_batch(number)


def write_arrays(path: Path, arrays: dict[str, npt.NDArray[Any]]) -> None:
    """Writes numpy arrays side by side."""
    with path.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def read_arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Returns what `write_arrays` wrote."""
    with np.load(path, allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}
