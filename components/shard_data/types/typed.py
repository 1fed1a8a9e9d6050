"""Columns of formats that declare their types, brought to the few that are told apart later.

Text becomes codes into distinct texts, whole numbers and what they mean int64, others float64,
lists lists of these. Text stays text, whatever it looks like.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as kinds

from components.shard_data.findings import flag
from components.shard_data.options import ShardOptions
from components.shard_data.types import numeric
from components.shard_data.types.look import Place, look
from components.shard_data.types.profile import Mark, Profile
from components.shard_data.types.texts import Texts, null_texts
from trainer.data.blocks import NULL_INT
from trainer.errors import UsageError


@dataclass(frozen=True)
class Typed:
    """A column as the spill holds it, and what it says."""

    array: pa.Array
    profile: Profile


def settle(
    name: str, column: pa.ChunkedArray, options: ShardOptions, place: Place, most_words: int
) -> Typed:
    """Returns a column [n] of any arrow type that is read.

    Raises:
      UsageError: a type that is not read, values that do not fit, nulls inside lists.
    """
    declared = str(column.type)
    if kinds.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if column.null_count == len(column) or kinds.is_null(column.type):
        profile = Profile(kind="null", declared=declared, origin=place.origin)
        return Typed(pa.nulls(len(column)), profile)
    if _is_binary(column.type):
        column = _as_text_if_it_is(column)
    forced = options.types.get(name)
    if forced is not None:
        if kinds.is_nested(column.type) or _is_binary(column.type):
            raise UsageError(f"--type {name}={forced}: column {name} is {declared}, no scalar")
        texts = null_texts(Texts.of(name, column), options)
        return Typed(texts.to_arrow(), look(texts, options, place, most_words))
    found = _settled(name, column, options, most_words)
    filled = {"declared": declared, "origin": place.origin}
    return Typed(found.array, found.profile.model_copy(update=filled))


def _settled(name: str, column: pa.ChunkedArray, options: ShardOptions, most_words: int) -> Typed:
    kind = column.type
    if _is_text(kind):
        return _text(null_texts(Texts.of(name, column), options), most_words)
    if _is_binary(kind):
        whole = _one(column.cast(pa.large_binary()))
        return Typed(whole, Profile(kind="bytes", marks=_value(whole), words=None))
    if kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind):
        return _lists(name, column, options, most_words)
    numbers = _numbers(name, column)
    return _described(_without_nulls_of(name, numbers, options))


def _is_text(kind: pa.DataType) -> bool:
    return kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind)


def _is_binary(kind: pa.DataType) -> bool:
    return (
        kinds.is_binary(kind)
        or kinds.is_large_binary(kind)
        or kinds.is_binary_view(kind)
        or kinds.is_fixed_size_binary(kind)
    )


def _as_text_if_it_is(column: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        return column.cast(pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:
        return column


def _one(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    if not isinstance(whole, pa.ChunkedArray):
        return whole
    return whole.chunk(0) if whole.num_chunks else pa.array([], column.type)


def _value(array: pa.Array) -> dict[str, Mark]:
    rows = len(array) - array.null_count
    return {"value": Mark(rows=rows)} if rows else {}


def _text(texts: Texts, most_words: int) -> Typed:
    array = texts.to_arrow()
    few = len(texts.distinct) <= most_words
    words = tuple(texts.distinct.to_pylist()) if few else None
    return Typed(array, Profile(kind="string", marks=_value(array), words=words))


@dataclass(frozen=True)
class _Numbers:
    """int64 or float64 with nulls, what they mean, and what is to be said of the column."""

    array: pa.Array
    kind: str
    notes: tuple[str, ...] = ()


def _described(numbers: _Numbers) -> Typed:
    present = numbers.array.drop_null().to_numpy(zero_copy_only=False)
    marks = _value(numbers.array)
    largest = 0.0
    if present.size:
        # Not of the absolute values: that of the smallest int64 is no int64.
        largest = max(float(present.max()), -float(present.min()))
    if numbers.kind == "float64":
        unwhole = int((present != np.floor(present)).sum())
        if unwhole:
            marks["unwhole"] = Mark(rows=unwhole)
    profile = Profile(kind=numbers.kind, marks=marks, largest=largest, notes=numbers.notes)
    return Typed(numbers.array, profile)


def _numbers(name: str, column: pa.ChunkedArray) -> _Numbers:
    kind = column.type
    if kinds.is_floating(kind):
        return _Numbers(_floats(name, column), "float64")
    if kinds.is_decimal(kind):
        if kind.scale == 0:
            return _Numbers(_integers(name, column), "int64")
        return _Numbers(_floats(name, column), "float64", (f" is {kind}: stored as float32",))
    for matches, logical, steps in _AS_INTEGERS:
        if matches(kind):
            notes = _of_timestamps(column) if logical == "timestamp" else ()
            for step in steps:
                column = _cast(name, column, step)
            return _Numbers(_integers(name, column), logical, notes)
    raise UsageError(
        f"column {name} is {kind}, which is not read: {flag('--drop', name)} leaves it out"
    )


_MICROS = (pa.time64("us"), pa.int64())
_AS_INTEGERS: tuple[tuple[Callable[[pa.DataType], bool], str, tuple[pa.DataType, ...]], ...]
_AS_INTEGERS = (
    (kinds.is_integer, "int64", ()),
    (kinds.is_boolean, "bool", (pa.int64(),)),
    (kinds.is_date, "date", (pa.date32(), pa.int32())),
    (kinds.is_timestamp, "timestamp", (pa.timestamp("us", "UTC"), pa.int64())),
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


def _of_timestamps(column: pa.ChunkedArray) -> tuple[str, ...]:
    notes = []
    if column.type.tz is None:
        notes.append(": timestamps without zone are read as UTC")
    if column.type.unit == "ns":
        nanos = column.drop_null().cast(pa.int64()).to_numpy()
        if (nanos % 1000).any():
            notes.append(": digits finer than microseconds are cut")
    return tuple(notes)


def _integers(name: str, column: pa.ChunkedArray) -> pa.Array:
    try:
        whole = column.cast(pa.int64())
    except pa.ArrowInvalid:
        whole = None
    if whole is None or pc.min(whole).as_py() == NULL_INT:
        raise UsageError(
            f"column {name} holds whole numbers beyond int64: {flag('--type', f'{name}=string')} "
            f"keeps the digits, {flag('--type', f'{name}=float32')} rounds"
        )
    return _one(whole)


def _floats(name: str, column: pa.ChunkedArray) -> pa.Array:
    """float64 with nan as null; infinity is refused."""
    values = _one(column.cast(pa.float64()))
    if pc.any(pc.is_inf(values)).as_py():
        raise UsageError(
            f"column {name} holds infinity: make it null in the source, or leave the column out "
            f"with {flag('--drop', name)}"
        )
    return pc.if_else(pc.is_nan(values), pa.scalar(None, pa.float64()), values)


def _without_nulls_of(name: str, numbers: _Numbers, options: ShardOptions) -> _Numbers:
    """Makes the numbers that `--null-value` names null."""
    named = options.null_everywhere | options.null_by_column.get(name, frozenset())
    form = numeric.Form.of(pa.array(sorted(named), pa.string()))
    if not form.number.any():
        return numbers
    array = numbers.array
    if pa.types.is_integer(array.type):
        # 1.5 is no whole number, and must not pass for 1.
        fits = form.number & form.whole()
        values: npt.NDArray[np.generic] = form.int64()[0][fits]
    else:  # as float32 has them: what was 0.1 there is not 0.1 in float64
        values = form.float64()[form.number]
        array = array.cast(pa.float32(), safe=False)
        values = values.astype(np.float32)
    null = pc.is_in(array, pa.array(values, array.type))
    kept = pc.if_else(null, pa.scalar(None, numbers.array.type), numbers.array)
    return _Numbers(kept, numbers.kind, numbers.notes)


def _lists(name: str, column: pa.ChunkedArray, options: ShardOptions, most_words: int) -> Typed:
    """Lists of numbers or text; fixed-size ones keep their size."""
    size = column.type.list_size if kinds.is_fixed_size_list(column.type) else None
    lists = _one(column)
    valid = numeric.mask(lists.is_valid())
    wide = lists.cast(pa.large_list(column.type.value_type))
    flat = pa.chunked_array([wide.flatten()])
    inner = _inner(name, flat, options, most_words)
    # The lists' own null mask and lengths; the flat values leave out what null lists hide.
    lengths = np.where(valid, pc.list_value_length(wide).fill_null(0).to_numpy(), 0)
    offsets = pa.array(np.concatenate(([0], np.cumsum(lengths))), pa.int64())
    array = pa.LargeListArray.from_arrays(offsets, inner.array, mask=pa.array(~valid))
    profile = inner.profile.model_copy(
        update={
            "shape": (size,),
            "marks": {**inner.profile.marks, "value": Mark(rows=int(valid.sum()))},
        }
    )
    return Typed(array, profile)


def _inner(name: str, flat: pa.ChunkedArray, options: ShardOptions, most_words: int) -> Typed:
    if kinds.is_null(flat.type) or (not len(flat) and not kinds.is_nested(flat.type)):
        return _of_no_value(name, flat)
    if kinds.is_nested(flat.type):
        raise UsageError(
            f"column {name} holds lists of {flat.type}: {flag('--drop', name)} leaves it out"
        )
    if _is_binary(flat.type):
        flat = _as_text_if_it_is(flat)
    if _is_text(flat.type):
        found = Typed(_one(flat.cast(pa.large_string())), Profile(kind="string"))
    elif _is_binary(flat.type):
        found = Typed(_one(flat.cast(pa.large_binary())), Profile(kind="bytes"))
    else:
        found = _described(_numbers(name, flat))
    if found.array.null_count:
        raise UsageError(
            f"column {name} has lists with null or nan inside: fill them, or leave the column out "
            f"with {flag('--drop', name)}"
        )
    return found


def _of_no_value(name: str, flat: pa.ChunkedArray) -> Typed:
    """Only empty lists: their type goes with any other."""
    if len(flat):
        raise UsageError(
            f"column {name} has lists with null or nan inside: fill them, or leave the column out "
            f"with {flag('--drop', name)}"
        )
    if kinds.is_null(flat.type):
        return Typed(pa.nulls(0), Profile(kind="null"))
    if _is_text(flat.type):
        return Typed(pa.array([], pa.large_string()), Profile(kind="string"))
    if _is_binary(flat.type):
        return Typed(pa.array([], pa.large_binary()), Profile(kind="bytes"))
    return _described(_numbers(name, flat))
