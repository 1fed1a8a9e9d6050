"""Values of a piece as the dataset stores them: what a `Plan` says, done.

A settled column is an arrow array: int64 and float32 with null as a sentinel, int32 codes of
dictionary text (null: -1), large_binary for other text, and lists of these.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from components.shard_data.options import ShardOptions
from components.shard_data.types import numeric, times
from components.shard_data.types.plan import Plan
from components.shard_data.types.texts import Texts
from trainer.data.blocks import NULL_CODE, NULL_INT

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Settled:
    """A column [n], and how many different numbers it has before and after rounding."""

    array: pa.Array
    before: int = 0
    after: int = 0


def settle(plan: Plan, array: pa.Array, options: ShardOptions) -> Settled:
    """Returns the column of a piece as it is stored."""
    if pa.types.is_null(array.type):
        return Settled(_nulls(plan, len(array)))
    if plan.shape:
        return _lists(plan, array)
    if plan.kind in ("string", "bytes"):
        return Settled(_text(plan, array))
    if plan.as_text:
        return _numbers_of(plan, Texts.of(plan.name, array), options)
    if plan.dtype == "float32":
        return _rounded(array.cast(pa.float64(), safe=False).fill_null(np.nan).to_numpy())
    return Settled(array.cast(pa.int64()).fill_null(NULL_INT))


def _nulls(plan: Plan, rows: int) -> pa.Array:
    if plan.shape:
        return pa.nulls(rows, pa.large_list(_value_type(plan)))
    if plan.dtype == "string":
        if plan.words is None:
            return pa.nulls(rows, pa.large_binary())
        return pa.array(np.full(rows, NULL_CODE, np.int32))
    if plan.dtype == "float32":
        return pa.array(np.full(rows, np.nan, np.float32))
    return pa.array(np.full(rows, NULL_INT, np.int64))


def _value_type(plan: Plan) -> pa.DataType:
    return {"string": pa.large_binary(), "float32": pa.float32(), "int64": pa.int64()}[plan.dtype]


def _text(plan: Plan, array: pa.Array) -> pa.Array:
    if plan.words is None:
        if pa.types.is_dictionary(array.type):
            return array.dictionary.cast(pa.large_binary()).take(array.indices)
        return array.cast(pa.large_binary())
    texts = Texts.of(plan.name, array)
    number = {word: i for i, word in enumerate(plan.words)}
    codes = np.array([number[text] for text in texts.distinct.to_pylist()], np.int32)
    return pa.array(texts.spread(codes, NULL_CODE))


def _numbers_of(plan: Plan, texts: Texts, options: ShardOptions) -> Settled:
    form = numeric.Form.of(texts.distinct, options.decimal, options.thousands)
    if plan.kind == "float32":
        rounded = _rounded(form.float64())
        values = rounded.array.to_numpy()
        spread = pa.array(texts.spread(values, np.nan))
        return Settled(spread, rounded.before, rounded.after)
    null = form.blank | form.nan
    if plan.kind == "int64":
        whole = form.int64()[0]
    elif plan.kind == "bool":
        trimmed = pc.ascii_trim_whitespace(texts.distinct)
        whole = numeric.mask(pc.match_substring_regex(trimmed, "^(?i:true|1)$")).astype(np.int64)
    else:
        whole = times.parse(texts.distinct, plan.kind)[0]
    return Settled(pa.array(texts.spread(np.where(null, NULL_INT, whole), NULL_INT)))


def _rounded(values: Floats) -> Settled:
    """float64 (nan: null) as float32, and how many numbers fall together by that."""
    narrow = values.astype(np.float32)
    present = np.sort(values[~np.isnan(values)])
    if not present.size:
        return Settled(pa.array(narrow))
    new = np.diff(present) > 0
    also_new = np.diff(present.astype(np.float32)) > 0
    return Settled(pa.array(narrow), int(new.sum()) + 1, int(also_new.sum()) + 1)


def _lists(plan: Plan, array: pa.LargeListArray) -> Settled:
    values = array.values
    before = after = 0
    if plan.dtype == "string":
        values = values.cast(pa.large_binary())
    elif plan.dtype == "float32":
        rounded = _rounded(values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
        values, before, after = rounded.array, rounded.before, rounded.after
    else:
        values = values.cast(pa.int64())
    lists = pa.LargeListArray.from_arrays(
        array.offsets, values, mask=pc.is_null(array) if array.null_count else None
    )
    return Settled(lists, before, after)
