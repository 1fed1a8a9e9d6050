"""A part of a source that is read on its own, and what reading it gives.

A piece is small enough to hold in memory and begins and ends between two rows. All that is needed
to read it stands in it: any process can, in any order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from components.shard_data.findings import Findings
from trainer.errors import UsageError

Format = Literal["csv", "tsv", "jsonl", "parquet", "arrow", "tfrecord", "images"]
Columns = dict[str, pa.ChunkedArray]
Partitions = tuple[tuple[str, str | None], ...]


@dataclass(frozen=True)
class Piece:
    """Rows of one file that stand one after another.

    Attributes:
      name: what errors call the file: its path, with `!member` for a zip's members.
      format: which module of this package reads it.
      path: a local file, neither packed nor in another encoding than UTF-8.
      start, end: which part of it; bytes, or rows counted from the first one of `group`.
      first: whether it is the file's first piece.
      partitions: hive columns from the names of the file's folders (COL=VALUE).
      columns: name and kind of the file's columns, where the piece itself does not tell them.
      group: the row group or record batch in which the piece begins.
    """

    name: str
    format: Format
    path: str
    start: int
    end: int
    first: bool
    partitions: Partitions = ()
    columns: tuple[tuple[str, str], ...] = ()
    group: int = 0


@dataclass(frozen=True)
class Rejected:
    """A row that cannot be read: its number within the piece, from 0, and why."""

    row: int
    reason: str


@dataclass(frozen=True)
class Read:
    """A piece's rows, in the order of the file.

    Attributes:
      columns: name to array [kept]. Text formats: strings, an unquoted empty field is null. Typed
        formats: the declared types, structs flattened to `a.b`. Of JSON, a key that no row of the
        piece has is no column here, and one that is null in all of them has the type null, though
        it may be an object elsewhere.
      typed: whether the columns have declared types.
      as_written: the columns that are text whatever they look like.
      rows: rows of the piece, rejected ones too.
      kept: int64 [kept]: the numbers within the piece of the rows that `columns` has.
      rejected: the other ones.
      say: what the reader of the dataset should know.
    """

    columns: Columns
    typed: bool
    rows: int
    kept: npt.NDArray[np.int64]
    as_written: frozenset[str] = frozenset()
    rejected: tuple[Rejected, ...] = ()
    say: Findings = field(default_factory=Findings)


def too_many(where: str, rejected: Rejected) -> UsageError:
    """Returns the error about the damaged row at a place that is one too many."""
    return UsageError(
        f"{where}: {rejected.reason}: mend it, or leave such rows out with --max-bad-rows N"
    )


def cannot_unpack(target: Path, error: OSError) -> UsageError:
    """Returns the error about a file of the work directory that cannot be written."""
    return UsageError(f"cannot unpack into {target.parent}: {error.strerror or error}")
