"""What the formats with declared types have in common: structs become columns `a.b`."""

from __future__ import annotations

import re

import pyarrow as pa

from components.shard_data.findings import Findings
from components.shard_data.formats.piece import Columns
from trainer.errors import UsageError

_INDEX = re.compile(r"__index_level_\d+__")


def flattened(name: str, table: pa.Table, say: Findings) -> Columns:
    """Returns a table's columns by name; pandas' row index is kept out, and said.

    Raises:
      UsageError: two columns have one name.
    """
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
