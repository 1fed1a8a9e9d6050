"""Reads any piece: the module of its format, then the columns from its folders' names."""

from __future__ import annotations

import dataclasses
from types import ModuleType

import numpy as np
import pyarrow as pa

from components.shard_data.formats import arrow, delimited, images, jsonl, parquet, tfrecord
from components.shard_data.formats.piece import (
    Columns,
    Format,
    Partitions,
    Piece,
    Read,
    Rejected,
    too_many,
)
from components.shard_data.options import ShardOptions
from trainer.errors import UsageError

# Each module has `cut`, `read` and `place`.
_MODULES: dict[Format, ModuleType] = {
    "csv": delimited,
    "tsv": delimited,
    "jsonl": jsonl,
    "parquet": parquet,
    "arrow": arrow,
    "tfrecord": tfrecord,
    "images": images,
}


def cut(whole: Piece, options: ShardOptions, piece_bytes: int) -> list[Piece]:
    """Cuts a file into pieces of about `piece_bytes` as read; at least one, which may be empty.

    Args:
      whole: the file; its start, end and header are not looked at.
      options: how text is written.
      piece_bytes: the aim; a single row may be larger.

    Raises:
      UsageError: the file is damaged, or not what its name says.
    """
    pieces: list[Piece] = _MODULES[whole.format].cut(whole, options, piece_bytes)
    return pieces


def read(piece: Piece, options: ShardOptions) -> Read:
    """Returns the rows of a piece.

    Raises:
      UsageError: it cannot be read, or has more damaged rows than `--max-bad-rows` allows.
    """
    found: Read = _MODULES[piece.format].read(piece, options)
    if len(found.rejected) > options.max_bad_rows:
        raise refusal(piece, found.rejected[options.max_bad_rows], options)
    _add_partitions(piece.name, found.columns, piece.partitions, len(found.kept))
    names = frozenset(name for name, _ in piece.partitions)
    return dataclasses.replace(found, as_written=found.as_written | names)


def place(piece: Piece, row: int, options: ShardOptions) -> str:
    """Returns where a row of a piece stands, as in `a.csv, line 12`; reads the file for it.

    Args:
      piece: as it was read.
      row: number of the row within the piece, from 0, rejected rows counted.
      options: as it was read with.
    """
    where: str = _MODULES[piece.format].place(piece, row, options)
    return where


def refusal(piece: Piece, rejected: Rejected, options: ShardOptions) -> UsageError:
    """Returns the error about a damaged row that is one too many."""
    return too_many(place(piece, rejected.row, options), rejected)


def _add_partitions(name: str, columns: Columns, partitions: Partitions, rows: int) -> None:
    for key, value in partitions:
        if key in columns:
            raise UsageError(f"{name}: column {key!r} is in the file and in its folder's name")
        constant = pa.array([value], pa.string()).take(pa.array(np.zeros(rows, np.int64)))
        columns[key] = pa.chunked_array([constant])
