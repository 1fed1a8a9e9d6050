"""Settled arrow columns (see `types.cast`) as the trainer's columns, nulls as sentinels."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from components.shard_data.types.numeric import mask
from trainer.data.blocks import NULL_CODE, Column
from trainer.data.manifest import Feature


def of_arrow(feature: Feature, array: pa.Array) -> Column:
    """Returns a column of n rows; text without dictionary is an object array of bytes."""
    if feature.shape:
        return _lists(feature, array)
    return Column(_values(array))


def _values(array: pa.Array) -> npt.NDArray[Any]:
    if not pa.types.is_large_binary(array.type):
        return np.asarray(array.to_numpy(zero_copy_only=False))
    if array.null_count:
        array = array.fill_null(b"")
    values = np.empty(len(array), object)
    values[:] = array.to_pylist()
    return values


def _lists(feature: Feature, array: pa.LargeListArray) -> Column:
    valid = mask(array.is_valid())
    flat = _values(array.flatten())
    marks = None if valid.all() else valid
    (size,) = feature.shape
    if size is None:
        lengths = np.where(valid, pc.list_value_length(array).fill_null(0).to_numpy(), 0)
        splits = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        return Column(flat, splits, marks)
    values = np.zeros((len(valid), size), flat.dtype)
    if flat.dtype == object:
        values[:] = b""
    values[valid] = flat.reshape(-1, size)
    return Column(values, valid=marks)


def remapped(column: Column, numbers: npt.NDArray[np.int32] | None) -> Column:
    """Returns codes into a shorter dictionary: `numbers` [words] has the new code of each."""
    if numbers is None:
        return column
    return Column(np.append(numbers, np.int32(NULL_CODE))[column.values])
