"""Which rows a step sees: a pure function of (data set, seed, global batch, step).

The number of workers and replicas has no part in it. Every epoch puts the shards in an order drawn
from (seed, epoch); their rows, one after another, are cut into L equal segments, one a lane (the
few rows beyond a multiple of L sit this epoch out). Inside a segment, windows of rows are permuted.
A lane is the endless sequence of its segments; a global batch takes B/L rows from every lane, so
step k is at position k·B/L of each. Resuming is arithmetic: no iterator is saved.

L depends on the data set and the batch alone, and the replicas R must divide it: replica r reads
lanes r, r+R, … Nothing here reads a file or needs TensorFlow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trainer.errors import UsageError

# More lanes would serve more replicas than one run can use and cost a file handle each.
MOST_LANES = 64


@dataclass(frozen=True)
class Piece:
    """Rows start..end of shard number `shard`, in stored order."""

    shard: int
    start: int
    end: int


@dataclass(frozen=True)
class Window:
    """Consecutive pieces of one lane whose rows are read in the order `permutation`."""

    epoch: int
    lane: int
    number: int
    pieces: tuple[Piece, ...]

    @property
    def rows(self) -> int:
        """Rows in the window."""
        return sum(piece.end - piece.start for piece in self.pieces)


@dataclass(frozen=True)
class Lanes:
    """The order of one split. shard_rows: rows of each shard, in the manifest's order."""

    shard_rows: tuple[int, ...]
    global_batch: int
    count: int
    seed: int
    window_rows: int

    @property
    def rows_per_step(self) -> int:
        """Rows that one step takes from one lane."""
        return self.global_batch // self.count

    @property
    def rows_per_epoch(self) -> int:
        """Rows of one lane's segment."""
        return sum(self.shard_rows) // self.count

    def windows(self, lane: int, step: int) -> Iterator[tuple[Window, int]]:
        """Yields the endless windows of a lane from `step` on, each with the rows to skip in it."""
        epoch, offset = divmod(step * self.rows_per_step, self.rows_per_epoch)
        number, skip = divmod(offset, self.window_rows)
        while True:
            order = self._shard_order(epoch)
            while number * self.window_rows < self.rows_per_epoch:
                start = number * self.window_rows
                end = min(start + self.window_rows, self.rows_per_epoch)
                base = lane * self.rows_per_epoch
                pieces = self._pieces(order, base + start, base + end)
                yield Window(epoch, lane, number, pieces), skip
                number, skip = number + 1, 0
            epoch, number = epoch + 1, 0

    def permutation(self, window: Window) -> npt.NDArray[np.int64]:
        """Returns the order in which a window's rows are read, int64 [rows]."""
        return _permutation(window.rows, self.seed, window.epoch, window.lane, window.number)

    def _shard_order(self, epoch: int) -> npt.NDArray[np.int64]:
        return _permutation(len(self.shard_rows), self.seed, epoch)

    def _pieces(self, order: npt.NDArray[np.int64], start: int, end: int) -> tuple[Piece, ...]:
        """Rows start..end of the shards laid one after another in `order`."""
        ends = np.cumsum([self.shard_rows[shard] for shard in order])
        pieces = []
        first = int(np.searchsorted(ends, start, side="right"))
        for place in range(first, len(order)):
            shard = int(order[place])
            begin = int(ends[place]) - self.shard_rows[shard]
            if begin >= end:
                break
            low, high = max(start - begin, 0), min(end - begin, self.shard_rows[shard])
            if low < high:
                pieces.append(Piece(shard, low, high))
        return tuple(pieces)


def _permutation(size: int, *key: int) -> npt.NDArray[np.int64]:
    """A permutation of range(size) drawn from `key`.

    Sorting raw Philox words: NumPy promises that bit generators keep their streams for ever, and
    promises nothing of the kind for `Generator.permutation`. The low bits of each word are its
    place: no two are equal, and sorting the words is several times faster than `argsort`.
    """
    words = np.random.Philox(np.random.SeedSequence(key)).random_raw(size)
    low = np.uint64((1 << size.bit_length()) - 1)
    words = words & ~low | np.arange(size, dtype=np.uint64)
    words.sort()
    return (words & low).astype(np.int64)


def plan(
    shard_rows: Sequence[int],
    *,
    global_batch: int,
    replicas: int,
    seed: int = 0,
    window_rows: int = 8192,
    lanes: int | None = None,
) -> Lanes:
    """Returns the order of a split, checked against the number of replicas.

    Args:
      shard_rows: rows of each shard.
      global_batch: rows a step, over all replicas.
      replicas: replicas R that will share the lanes.
      seed: decides the order.
      window_rows: rows of a lane that are permuted together.
      lanes: L; by default the largest divisor of the batch that the shards (and 64) allow.

    Raises:
      UsageError: fewer shards than replicas or lanes, a batch that the lanes do not divide, lanes
        that the replicas do not divide, or fewer rows than one step takes.
    """
    shards, rows = len(shard_rows), sum(shard_rows)
    if shards < replicas:
        raise UsageError(
            f"shards ({shards}) < replicas ({replicas}): re-shard with --shards >= {replicas}"
        )
    if global_batch % replicas:
        raise UsageError(
            f"global_batch ({global_batch}) is not a multiple of replicas ({replicas}): "
            f"take {global_batch - global_batch % replicas + replicas}"
        )
    count = lanes or max(n for n in range(1, min(shards, MOST_LANES) + 1) if global_batch % n == 0)
    if count > shards:
        raise UsageError(f"shards ({shards}) < lanes ({count}): re-shard with --shards >= {count}")
    if global_batch % count:
        raise UsageError(f"lanes ({count}) do not divide global_batch ({global_batch})")
    if count % replicas:
        raise UsageError(
            f"replicas ({replicas}) do not divide lanes ({count}): "
            + _remedy(shards, replicas, global_batch)
        )
    if rows // count == 0:
        raise UsageError(f"the split has {rows} rows, fewer than lanes ({count}): pass --lanes 1")
    return Lanes(tuple(shard_rows), global_batch, count, seed, window_rows)


def _remedy(shards: int, replicas: int, global_batch: int) -> str:
    """Says which --lanes would do, or which batch."""
    fitting = [
        n for n in range(replicas, min(shards, MOST_LANES) + 1, replicas) if global_batch % n == 0
    ]
    if fitting:
        return f"pass --lanes {fitting[-1]} (from the start of the run: it changes the row order)"
    return f"choose a --global-batch that is a multiple of {replicas}"
