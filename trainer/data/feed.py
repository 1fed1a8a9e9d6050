"""Super-batches as arrays: the next `steps` steps of one replica, read lane by lane.

Lanes are combined window by window, never batch by batch: each hands over the rows of all the
steps at once, and a reshape deals them to the steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from trainer.data.blocks import Block, concat
from trainer.data.dataset import Dataset
from trainer.data.lanes import Lanes
from trainer.data.rows import ShardReader


def lanes_of(replica: int, replicas: int, lanes: Lanes) -> range:
    """Returns the lanes that a replica reads."""
    return range(replica, lanes.count, replicas)


class _Lane:
    """One lane's endless rows in training order, from `step` on."""

    def __init__(self, dataset: Dataset, split: str, lanes: Lanes, lane: int, step: int) -> None:
        self._lanes = lanes
        self._reader = ShardReader(dataset, split)
        self._windows = lanes.windows(lane, step)
        self._left: Block | None = None

    def take(self, rows: int) -> Block:
        parts: list[Block] = []
        while rows:
            block = self._left if self._left is not None else self._next_window()
            parts.append(block.slice(0, rows))
            self._left = block.slice(rows, block.rows) if block.rows > rows else None
            rows -= parts[-1].rows
        return concat(parts)

    def _next_window(self) -> Block:
        window, skip = next(self._windows)
        pieces = [self._reader.read(p.shard, p.start, p.end) for p in window.pieces]
        return concat(pieces).take(self._lanes.permutation(window)[skip:])


def super_batches(
    dataset: Dataset,
    split: str,
    lanes: Lanes,
    which: Sequence[int],
    *,
    step: int,
    steps: int,
) -> Iterator[Block]:
    """Yields blocks of steps * rows rows, endlessly, starting with step `step`.

    Row order inside a block: by step, then by lane in the order of `which`, so that
    `reshape([steps, rows, …])` gives one batch a step.
    """
    readers = [_Lane(dataset, split, lanes, lane, step) for lane in which]
    rows = lanes.rows_per_step
    # From lane-major [lanes, steps, rows] to step-major [steps, lanes, rows].
    lane_major = np.arange(len(which) * steps * rows).reshape(len(which), steps, rows)
    order = lane_major.transpose(1, 0, 2).ravel()
    while True:
        yield concat([reader.take(steps * rows) for reader in readers]).take(order)
