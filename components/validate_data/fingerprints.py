"""A number for each row, equal for rows that are equal in every column; to find them twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from trainer.data.blocks import Block, Column
from trainer.data.manifest import Feature

Hashes = npt.NDArray[np.uint64]

# Of splitmix64.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_A, _B, _C = np.uint64(30), np.uint64(27), np.uint64(31)


def of_rows(features: Sequence[Feature], block: Block) -> Hashes:
    """Returns uint64 [rows]; with n rows in all, two that differ meet by a chance of n²/2^65."""
    total = np.zeros(block.rows, np.uint64)
    for feature in features:
        total = _mixed(total * _STEP + _of_column(block.column(feature)))
    return total


def _mixed(values: Hashes) -> Hashes:
    values = (values ^ (values >> _A)) * _FIRST
    values = (values ^ (values >> _B)) * _SECOND
    return values ^ (values >> _C)


def _of_column(column: Column) -> Hashes:
    values = column.values
    if column.splits is None:
        if values.ndim == 1:
            return _of_values(values)
        cells = _of_values(values.ravel()).reshape(len(values), -1)
        places = np.arange(cells.shape[-1], dtype=np.uint64)
        return _with_valid(_mixed(cells + places * _STEP).sum(axis=1, dtype=np.uint64), column)
    lengths = np.diff(column.splits)
    place = np.arange(len(values)) - np.repeat(column.splits[:-1], lengths)
    cells = _mixed(_of_values(values) + place.astype(np.uint64) * _STEP)
    sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(cells, dtype=np.uint64)))
    whole = sums[column.splits[1:]] - sums[column.splits[:-1]] + lengths.astype(np.uint64)
    return _with_valid(whole, column)


def _with_valid(hashes: Hashes, column: Column) -> Hashes:
    """An absent list is none that is empty."""
    return hashes if column.valid is None else np.where(column.valid, hashes, _STEP)


def _of_values(values: npt.NDArray[Any]) -> Hashes:
    if values.dtype == object:
        # Of this process only, which is all that comparing needs.
        return np.fromiter(map(hash, values.tolist()), np.int64, len(values)).view(np.uint64)
    if values.dtype == np.float32:
        return (values + np.float32(0)).view(np.uint32).astype(np.uint64)  # -0 is 0
    return values.astype(np.int64).view(np.uint64)
