"""One Parquet file: its columns with their declared types, structs flattened to `a.b`."""

from __future__ import annotations

import re

import pyarrow as pa
from pyarrow import parquet

from components.shard_data.findings import Findings
from trainer.errors import UsageError

_INDEX = re.compile(r"__index_level_\d+__")


def read(name: str, data: bytes, say: Findings) -> dict[str, pa.ChunkedArray]:
    """Returns the columns of one file; pandas' row index is kept out, and said.

    Raises:
      UsageError: the file is empty, damaged, or has two columns of one name.
    """
    if not data:
        raise UsageError(f"{name} is empty: it has neither a header nor rows")
    try:
        table = parquet.ParquetFile(pa.BufferReader(data)).read()
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise UsageError(f"{name} cannot be read as Parquet: {reason}") from None
    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    columns: dict[str, pa.ChunkedArray] = {}
    for column, values in zip(table.column_names, table.columns, strict=True):
        if column in columns:
            raise UsageError(f"{name} has 2 columns called {column!r}: rename all but one")
        if _INDEX.fullmatch(column):
            say.drop_column(column, "an index of rows")
        else:
            columns[column] = values
    return columns


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """Returns the type that holds both (int and float: float; null and any), or None."""
    kinds = pa.types
    if left == right or kinds.is_null(right):
        return left
    if kinds.is_null(left):
        return right
    if kinds.is_dictionary(left) or kinds.is_dictionary(right):
        return common_type(*(t.value_type if kinds.is_dictionary(t) else t for t in (left, right)))
    both = (left, right)
    if all(kinds.is_integer(t) for t in both):
        return pa.int64()
    if all(kinds.is_integer(t) or kinds.is_floating(t) for t in both):
        return pa.float64()
    if all(kinds.is_string(t) or kinds.is_large_string(t) for t in both):
        return pa.large_string()
    return None
