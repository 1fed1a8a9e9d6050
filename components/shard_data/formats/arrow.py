"""Arrow IPC: files (Feather is one since version 2) and streams; columns with declared types.

A damaged file may hold offsets that lead anywhere: nothing looks at its values before all of them
are checked (`typed.flattened`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pyarrow as pa

from components.shard_data.findings import Findings
from components.shard_data.formats.piece import Piece, Read
from components.shard_data.formats.typed import flattened, ranges
from components.shard_data.options import ShardOptions
from trainer.errors import UsageError

_FILE, _FIRST_FEATHER = b"ARROW1", b"FEA1"


def cut(whole: Piece, options: ShardOptions, piece_bytes: int) -> list[Piece]:
    """Cuts into ranges of rows.

    Raises:
      UsageError: the file is empty or damaged.
    """
    with _opened(whole) as (_, batches):
        sizes = [(len(batch), batch.get_total_buffer_size()) for batch in batches]
    return [
        replace(whole, group=group, start=start, end=end, first=not (group or start))
        for group, start, end in ranges(sizes, piece_bytes)
    ] or [replace(whole, start=0, end=0, first=True)]


def read(piece: Piece, options: ShardOptions) -> Read:
    """Returns the rows of a piece.

    Raises:
      UsageError: the file is damaged, or has two columns of one name.
    """
    say = Findings()
    with _opened(piece) as (schema, batches):
        table = pa.Table.from_batches(_rows(batches, piece), schema)
        columns = flattened(piece.name, table, say)
    return Read(columns, typed=True, rows=len(table), kept=np.arange(len(table)), say=say)


def place(piece: Piece, row: int, options: ShardOptions) -> str:
    """Returns file and number of a row, from 1."""
    with _opened(piece) as (_, batches):
        before = sum(len(batch) for batch in itertools.islice(batches, piece.group))
    return f"{piece.name}, row {before + piece.start + row + 1}"


def _rows(batches: Iterator[pa.RecordBatch], piece: Piece) -> Iterator[pa.RecordBatch]:
    at = 0
    for batch in itertools.islice(batches, piece.group, None):
        low, high = max(piece.start - at, 0), min(piece.end - at, len(batch))
        if low < high:
            yield batch.slice(low, high - low)
        at += len(batch)
        if at >= piece.end:
            return


@contextmanager
def _opened(piece: Piece) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
    """Gives the schema and the record batches, of which each is looked at once, in order."""
    try:
        with open(piece.path, "rb") as file:
            head = file.read(len(_FILE))
        if not head:
            raise UsageError(f"{piece.name} is empty: it has no rows")
        if head.startswith(_FIRST_FEATHER):  # Its reader crashes at damaged files.
            raise UsageError(f"{piece.name} is Feather of version 1: write it as version 2")
        with pa.memory_map(piece.path) as source:
            if head == _FILE:
                whole = pa.ipc.open_file(source)
                yield whole.schema, map(whole.get_batch, range(whole.num_record_batches))
            else:
                with pa.ipc.open_stream(source) as stream:
                    yield stream.schema, iter(stream)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0]
        raise UsageError(f"{piece.name} cannot be read as Arrow IPC: {reason}") from None
