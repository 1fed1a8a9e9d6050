"""Super-batches as arrays: the next `steps` steps of one replica, read lane by lane.

Lanes are combined window by window, never batch by batch: each hands over the rows of all the
steps at once, and a reshape deals them to the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from trainer import files
from trainer.data.blocks import Block, concat, dealt
from trainer.data.dataset import Dataset
from trainer.data.lanes import Lanes, Window
from trainer.data.rows import ShardReader
from trainer.data.staging import Ahead


def lanes_of(replica: int, replicas: int, lanes: Lanes) -> range:
    """Returns the lanes that a replica reads."""
    return range(replica, lanes.count, replicas)


class _Lane:
    """One lane's endless rows in training order, from `step` on.

    want: told the number of the next shard when the present one is open.
    """

    def __init__(
        self,
        dataset: Dataset,
        split: str,
        lanes: Lanes,
        lane: int,
        step: int,
        want: Callable[[int], None],
    ) -> None:
        self._lanes = lanes
        self._reader = ShardReader(dataset, split)
        self._windows = lanes.windows(lane, step)
        self._left: Block | None = None
        self._shard: tuple[int, int] | None = None  # epoch and number of the present one
        self._coming = _shards(lanes.windows(lane, step))
        self._want = want
        next(self._coming)

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
        pieces = []
        for piece in window.pieces:
            pieces.append(self._reader.read(piece.shard, piece.start, piece.end))
            if (shard := (window.epoch, piece.shard)) != self._shard:
                self._shard = shard
                self._want(next(self._coming))
        return concat(pieces).take(self._lanes.permutation(window)[skip:])


def _shards(windows: Iterator[tuple[Window, int]]) -> Iterator[int]:
    """Yields the shards of a lane in the order in which it reads them."""
    last = None
    for window, _ in windows:
        for piece in window.pieces:
            if (window.epoch, piece.shard) != last:
                last = window.epoch, piece.shard
                yield piece.shard


@contextmanager
def _staging(dataset: Dataset, split: str, lanes: int) -> Iterator[Callable[[int], None]]:
    """Yields what fetches a shard, by its number, in the background."""
    shards = dataset.split(split).shards
    cache = dataset.cache
    # Without room for the present and the next shard of all lanes, one would push out the other.
    needed = 2 * lanes * max(shard.bytes for shard in shards)
    if cache is None or not files.is_remote(dataset.path) or needed > cache.most_bytes:
        yield lambda number: None
        return
    ahead = Ahead(cache)
    try:
        yield lambda n: ahead.want(files.join(dataset.path, shards[n].path), shards[n])
    finally:
        ahead.stop()


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
    with _staging(dataset, split, len(which)) as want:
        readers = [_Lane(dataset, split, lanes, lane, step, want) for lane in which]
        while True:
            yield dealt([reader.take(steps * lanes.rows_per_step) for reader in readers], steps)
