"""Parquet: columns with their declared types. A piece is a range of rows.

What stands before a part of a row group has to be decoded for it, too: in some parts that is
cheaper than to wait for one process, in many it is not, and a file with such groups is written as
Arrow first.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from components.shard_data.findings import Findings
from components.shard_data.formats.piece import Piece, Read, cannot_unpack
from components.shard_data.formats.typed import flattened, ranges
from components.shard_data.options import ShardOptions
from trainer.errors import UsageError

_BATCH_ROWS = 1 << 16
_MOST_PARTS = 4


def cut(whole: Piece, options: ShardOptions, piece_bytes: int) -> list[Piece]:
    """Cuts into ranges of rows.

    Raises:
      UsageError: the file is empty or damaged.
    """
    with _opened(whole) as file:
        sizes = _sizes(file)
    return [
        replace(whole, group=group, start=start, end=end, first=not (group or start))
        for group, start, end in ranges(sizes, piece_bytes)
    ] or [replace(whole, start=0, end=0, first=True)]


def has_large_groups(whole: Piece, piece_bytes: int) -> bool:
    """Whether some row group is much larger than a piece should be.

    Raises:
      UsageError: the file is empty or damaged.
    """
    with _opened(whole) as file:
        return any(size > _MOST_PARTS * piece_bytes for _, size in _sizes(file))


def to_arrow(whole: Piece, target: Path) -> None:
    """Writes the file's rows as an Arrow file, in bounded memory.

    Raises:
      UsageError: the file is damaged, or the disk is full.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with _opened(whole) as file, pa.ipc.new_file(str(target), file.schema_arrow) as writer:
        for batch in file.iter_batches(_BATCH_ROWS, use_threads=False):
            try:
                writer.write_batch(batch)
            except OSError as error:
                raise cannot_unpack(target, error) from None


def read(piece: Piece, options: ShardOptions) -> Read:
    """Returns the rows of a piece; pandas' row index is kept out, and said.

    Raises:
      UsageError: the file is damaged, or has two columns of one name.
    """
    with _opened(piece) as file:
        table = pa.Table.from_batches(_rows(file, piece), file.schema_arrow)
    say = Findings()
    columns = flattened(piece.name, table, say)
    return Read(columns, typed=True, rows=len(table), kept=np.arange(len(table)), say=say)


def _sizes(file: parquet.ParquetFile) -> list[tuple[int, int]]:
    """Returns rows and bytes, decoded about, of each row group."""
    groups = [file.metadata.row_group(i) for i in range(file.num_row_groups)]
    return [(g.num_rows, max(g.total_byte_size, 8 * g.num_rows * g.num_columns)) for g in groups]


def place(piece: Piece, row: int, options: ShardOptions) -> str:
    """Returns file and number of a row, from 1."""
    with _opened(piece) as file:
        before = sum(file.metadata.row_group(group).num_rows for group in range(piece.group))
    return f"{piece.name}, row {before + piece.start + row + 1}"


def _rows(file: parquet.ParquetFile, piece: Piece) -> Iterator[pa.RecordBatch]:
    groups = range(piece.group, file.num_row_groups)
    at = 0
    for batch in file.iter_batches(_BATCH_ROWS, list(groups), use_threads=False):
        low, high = max(piece.start - at, 0), min(piece.end - at, len(batch))
        if low < high:
            yield batch.slice(low, high - low)
        at += len(batch)
        if at >= piece.end:
            return


@contextmanager
def _opened(piece: Piece) -> Iterator[parquet.ParquetFile]:
    try:
        with open(piece.path, "rb") as source:
            if not source.read(1):
                raise UsageError(f"{piece.name} is empty: it has neither a header nor rows")
        with parquet.ParquetFile(piece.path) as file:
            yield file
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0]
        raise UsageError(f"{piece.name} cannot be read as Parquet: {reason}") from None
