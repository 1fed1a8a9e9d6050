"""What the formats with declared types have in common.

Structs become columns `a.b`; a file is cut by its row groups or record batches.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

import pyarrow as pa

from components.shard_data.findings import Findings
from components.shard_data.formats.piece import Columns
from trainer.errors import UsageError

_INDEX = re.compile(r"__index_level_\d+__")


def flattened(name: str, table: pa.Table, say: Findings) -> Columns:
    """Returns a table's columns by name; pandas' row index is kept out, and said.

    Raises:
      UsageError: two columns have one name, or a value is none: text that is not UTF-8, say.
    """
    try:
        table.validate(full=True)
    except pa.ArrowInvalid as error:
        raise UsageError(f"{name} is damaged: {' '.join(str(error).split())}") from None
    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    columns: Columns = {}
    for column, values in zip(table.column_names, table.columns, strict=True):
        if column in columns:
            raise UsageError(f"{name} has 2 columns called {column!r}: rename all but one")
        if _INDEX.fullmatch(column):
            say.drop_column(column, "an index of rows")
        else:
            columns[column] = values
    return columns


def ranges(sizes: Sequence[tuple[int, int]], piece_bytes: int) -> Iterator[tuple[int, int, int]]:
    """Yields (group, start, end) of pieces; rows are counted from the first one of the group.

    Args:
      sizes: rows and bytes of each group.
      piece_bytes: small groups are taken together up to it, larger ones parted.
    """
    begin, rows, held = 0, 0, 0
    for group, (count, size) in enumerate(sizes):
        if rows and held + size > piece_bytes:
            yield begin, 0, rows
            rows, held = 0, 0
        if not rows:
            begin = group
        if size > piece_bytes and count > 1:
            parts = min(count, -(-size // piece_bytes))
            cuts = [count * i // parts for i in range(parts + 1)]
            yield from ((group, start, end) for start, end in itertools.pairwise(cuts))
        else:
            rows, held = rows + count, held + size
    if rows:
        yield begin, 0, rows
