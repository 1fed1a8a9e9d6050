"""Parquet: columns with their declared types; a piece is a range of rows of one row group."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from components.shard_data.findings import Findings
from components.shard_data.formats.piece import Piece, Read
from components.shard_data.formats.typed import flattened
from components.shard_data.options import ShardOptions
from trainer.errors import UsageError

_BATCH_ROWS = 1 << 16


def cut(whole: Piece, options: ShardOptions, piece_bytes: int) -> list[Piece]:
    """Cuts into ranges of rows; none reaches over two row groups.

    Raises:
      UsageError: the file is empty or damaged.
    """
    with _opened(whole) as file:
        groups = [file.metadata.row_group(i) for i in range(file.num_row_groups)]
        sizes = [(group.num_rows, group.total_byte_size) for group in groups]
    pieces, at = [], 0
    for rows, size in sizes:
        parts = max(1, min(rows, round(size / piece_bytes)))
        cuts = [at + rows * i // parts for i in range(parts + 1)]
        pieces += [
            replace(whole, start=start, end=end, first=not start)
            for start, end in itertools.pairwise(cuts)
            if end > start
        ]
        at += rows
    return pieces or [replace(whole, start=0, end=0, first=True)]


def read(piece: Piece, options: ShardOptions) -> Read:
    """Returns the rows of a piece; pandas' row index is kept out, and said.

    Raises:
      UsageError: the file is damaged, or has two columns of one name.
    """
    with _opened(piece) as file:
        table = pa.Table.from_batches(_rows(file, piece.start, piece.end), file.schema_arrow)
    say = Findings()
    columns = flattened(piece.name, table, say)
    return Read(columns, typed=True, rows=len(table), kept=np.arange(len(table)), say=say)


def place(piece: Piece, row: int, options: ShardOptions) -> str:
    """Returns file and number of a row, from 1."""
    return f"{piece.name}, row {piece.start + row + 1}"


def _rows(file: parquet.ParquetFile, start: int, end: int) -> Iterator[pa.RecordBatch]:
    """Yields the rows from `start` to `end`, counted over the file."""
    at = 0
    for group in range(file.num_row_groups):
        rows = file.metadata.row_group(group).num_rows
        if start == at and end == at + rows:
            yield from file.read_row_group(group).to_batches()
        elif start < at + rows and end > at:
            yield from _part(file, group, start - at, end - at)
        at += rows


def _part(file: parquet.ParquetFile, group: int, start: int, end: int) -> Iterator[pa.RecordBatch]:
    at = 0
    for batch in file.iter_batches(_BATCH_ROWS, [group], use_threads=False):
        low, high = max(start - at, 0), min(end - at, len(batch))
        if low < high:
            yield batch.slice(low, high - low)
        at += len(batch)
        if at >= end:
            return


@contextmanager
def _opened(piece: Piece) -> Iterator[parquet.ParquetFile]:
    try:
        with open(piece.path, "rb") as source:
            if not source.read(1):
                raise UsageError(f"{piece.name} is empty: it has neither a header nor rows")
        with parquet.ParquetFile(piece.path, memory_map=True) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise UsageError(f"{piece.name} cannot be read as Parquet: {reason}") from None
