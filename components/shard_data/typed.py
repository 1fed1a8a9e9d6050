"""Columns of formats that declare their types (Parquet) → series. Text in them stays text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as kinds

from components.shard_data import casts, numeric
from components.shard_data.findings import Findings, flag
from components.shard_data.options import ShardOptions
from components.shard_data.series import Series
from trainer.data.blocks import NULL_INT, Column
from trainer.errors import UsageError

_MICROSECONDS = pa.timestamp("us", "UTC")


def convert(
    name: str,
    column: pa.ChunkedArray,
    options: ShardOptions,
    where: Callable[[int], str],
    say: Findings,
) -> Series | None:
    """Returns a column [n] of any arrow type that is read, or None (said) if it has no value.

    Raises:
      UsageError: a type that is not read, values that do not fit, nulls inside lists.
    """
    if kinds.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if column.null_count == len(column):
        say.drop_column(name, "it has no value in any row")
        return None
    if kinds.is_binary(column.type) or kinds.is_large_binary(column.type):
        column = _utf8(name, column)
    is_text = _is_text(column.type)
    forced = options.types.get(name)
    if not is_text and forced is None:
        return _null_numbers(_from_values(name, column, say), options, say)
    if kinds.is_nested(column.type):
        raise UsageError(f"--type {name}={forced}: column {name} is {column.type}, no scalar")
    texts = casts.Texts.of(name, column, where)
    if is_text and forced is None:
        series = casts.as_text(casts.null_texts(texts, options))
        return _if_any(series, say)
    return casts.decide(texts, options, say)


def _if_any(series: Series, say: Findings) -> Series | None:
    if series.missing.all():
        say.drop_column(series.name, "it has no value in any row")
        return None
    return series


def _is_text(kind: pa.DataType) -> bool:
    return kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind)


def _utf8(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        raise UsageError(
            f"column {name} holds bytes that are not text: leave it out with {flag('--drop', name)}"
        ) from None


def _from_values(name: str, column: pa.ChunkedArray, say: Findings) -> Series:
    kind = column.type
    if kinds.is_floating(kind):
        return numeric.float_series(name, _floats(column), say)
    if kinds.is_decimal(kind):
        if kind.scale == 0:
            return numeric.int_series(name, _integers(name, column))
        say.note(f"column {name} is {kind}: stored as float32")
        return numeric.float_series(name, _floats(column), say)
    if kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind):
        return _from_lists(name, column, say)
    for matches, logical, steps in _AS_INTEGERS:
        if matches(kind):
            if logical == "timestamp":
                _tell_of_timestamps(name, column, say)
            for step in steps:
                column = _cast(name, column, step)
            return numeric.int_series(name, _integers(name, column), logical)
    raise UsageError(
        f"column {name} is {kind}, which is not read: {flag('--drop', name)} leaves it out"
    )


_MICROS = (pa.time64("us"), pa.int64())
_AS_INTEGERS: tuple[tuple[Callable[[pa.DataType], bool], str | None, tuple[pa.DataType, ...]], ...]
_AS_INTEGERS = (
    (kinds.is_integer, None, ()),
    (kinds.is_boolean, "bool", (pa.int64(),)),
    (kinds.is_date, "date", (pa.date32(), pa.int32())),
    (kinds.is_timestamp, "timestamp", (_MICROSECONDS, pa.int64())),
    (kinds.is_time, "time", _MICROS),
    (kinds.is_duration, "duration", (pa.duration("us"), pa.int64())),
)


def _cast(name: str, column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Casts; finer digits may be cut, but nothing may wrap around."""
    finer = getattr(column.type, "unit", None) == "ns"
    try:
        return column.cast(kind, safe=not finer)
    except pa.ArrowInvalid:
        raise UsageError(
            f"column {name} holds {column.type} values beyond what {kind} reaches: "
            f"{flag('--drop', name)} leaves it out"
        ) from None


def _tell_of_timestamps(name: str, column: pa.ChunkedArray, say: Findings) -> None:
    if column.type.tz is None:
        say.note(f"column {name}: timestamps without zone are read as UTC")
    if column.type.unit == "ns":
        nanos = column.drop_null().cast(pa.int64()).to_numpy()
        if (nanos % 1000).any():
            say.note(f"column {name}: digits finer than microseconds are cut")


def _integers(name: str, column: pa.ChunkedArray) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    try:
        whole = column.cast(pa.int64())
    except pa.ArrowInvalid:
        whole = None
    if whole is None or pc.min(whole).as_py() == NULL_INT:
        raise UsageError(
            f"column {name} holds whole numbers beyond int64: {flag('--type', f'{name}=string')} "
            f"keeps the digits, {flag('--type', f'{name}=float32')} rounds"
        )
    return np.asarray(whole.fill_null(NULL_INT).to_numpy(), np.int64)


def _floats(column: pa.ChunkedArray) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.asarray(column.cast(pa.float64()).fill_null(np.nan).to_numpy(), np.float64)


def _null_numbers(series: Series, options: ShardOptions, say: Findings) -> Series | None:
    """Makes the numbers that `--null-value` names null."""
    named = options.null_everywhere | options.null_by_column.get(series.name, frozenset())
    form = numeric.Form.of(pa.array(sorted(named), pa.string()))
    numbers = form.float64()[form.number]
    values = series.column.values
    if numbers.size and not series.shape:
        null = np.float32("nan") if series.dtype == "float32" else NULL_INT
        if series.dtype == "int64":  # 1.5 is no whole number, and must not pass for 1
            numbers = numbers[(numbers == np.floor(numbers)) & (np.abs(numbers) < 2**63)]
        compared = numbers.astype(values.dtype)
        values = np.where(np.isin(values, compared), null, values).astype(values.dtype)
        series = replace(series, column=replace(series.column, values=values))
    return _if_any(series, say)


def _from_lists(name: str, column: pa.ChunkedArray, say: Findings) -> Series:
    """Lists of numbers or text: fixed size keeps [n, k], otherwise flat values and splits."""
    size = column.type.list_size if kinds.is_fixed_size_list(column.type) else None
    lists = column.combine_chunks()
    if isinstance(lists, pa.ChunkedArray):
        lists = lists.chunk(0)
    valid = numeric.mask(lists.is_valid())
    lists = lists.cast(pa.large_list(column.type.value_type))
    lengths = np.where(valid, pc.list_value_length(lists).fill_null(0).to_numpy(), 0)
    flat = pa.chunked_array([lists.flatten()])
    inner = _inner(name, flat, say)
    if inner.missing.any():
        raise UsageError(
            f"column {name} has lists with null or nan inside: fill them, or leave the column out "
            f"with {flag('--drop', name)}"
        )
    marks = None if valid.all() else valid
    if size is None:
        splits = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        whole = Column(inner.column.values, splits, marks)
    else:
        values = np.zeros((len(valid), size), inner.column.values.dtype)
        values[valid] = inner.column.values.reshape(-1, size)
        if inner.words is not None:
            values[~valid] = -1
        whole = Column(values, valid=marks)
    return replace(inner, column=whole)


def _inner(name: str, flat: pa.ChunkedArray, say: Findings) -> Series:
    if kinds.is_nested(flat.type):
        raise UsageError(
            f"column {name} holds lists of {flat.type}: {flag('--drop', name)} leaves it out"
        )
    if _is_text(flat.type):
        return casts.as_text(casts.Texts.of(name, flat, lambda _: name))
    return _from_values(name, flat, say)
