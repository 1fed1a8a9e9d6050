"""Rows as arrays: reading pieces of shards, and columns as a served request would bring them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from trainer import files
from trainer.data.blocks import NULL_CODE, Array, Block, concat, decode_block
from trainer.data.compressed import unpacked
from trainer.data.dataset import Dataset
from trainer.data.manifest import Shard, Split
from trainer.data.records import DamagedRecord, read_records
from trainer.data.rowlayout import decode_rows


class DamagedShard(Exception):
    """A shard whose bytes or row count are not what the manifest says; the text names it."""


class ShardReader:
    """Reads ranges of one split's shards; consecutive ranges go on where the last one ended."""

    def __init__(self, dataset: Dataset, split: str) -> None:
        self._dataset = dataset
        self._split: Split = dataset.split(split)
        self._file: BinaryIO | None = None
        self._place: tuple[int, int] | None = None  # shard, row that comes next
        self._blocks: Iterator[Block] = iter(())
        self._rest: Block | None = None

    def read(self, shard: int, start: int, end: int) -> Block:
        """Returns rows start..end of shard number `shard`, in stored order.

        Raises:
          DamagedShard: a record is cut or altered, or rows are missing.
        """
        try:
            return self._read(shard, start, end)
        except DamagedShard:
            self._place = None
            # A local copy may have suffered where it lies: the shard itself may be well.
            if not _drop_damaged_copy(self._dataset, self._split.shards[shard]):
                raise
        return self._read(shard, start, end)

    def _read(self, shard: int, start: int, end: int) -> Block:
        if self._place != (shard, start):
            self._seek(shard, start)
        parts: list[Block] = []
        missing = end - start
        while missing:
            block = self._rest if self._rest is not None else self._next(shard)
            parts.append(block.slice(0, missing))
            self._rest = block.slice(missing, block.rows) if block.rows > missing else None
            missing -= parts[-1].rows
        self._place = (shard, end)
        return concat(parts)

    def close(self) -> None:
        """Closes the open shard."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _seek(self, shard: int, start: int) -> None:
        self.close()
        block_rows = self._dataset.manifest.block_rows
        skip = start // block_rows
        self._file = open_shard(self._dataset, self._split.shards[shard])
        self._blocks = _decoded(self._dataset, self._file, self._split.shards[shard], skip)
        self._rest = None
        inside = start - skip * block_rows
        if inside:
            block = self._next(shard)
            self._rest = block.slice(inside, block.rows)

    def _next(self, shard: int) -> Block:
        description = self._split.shards[shard]
        try:
            return next(self._blocks)
        except DamagedRecord as error:
            raise DamagedShard(f"shard {self._name(shard)} is damaged: {error}") from None
        except files.read_errors() as error:
            why = files.reason(error)
            raise DamagedShard(f"shard {self._name(shard)} cannot be read: {why}") from None
        except StopIteration:
            raise DamagedShard(
                f"shard {self._name(shard)} ends before its {description.rows} rows"
            ) from None

    def _name(self, shard: int) -> str:
        return files.join(self._dataset.path, self._split.shards[shard].path)


def _drop_damaged_copy(dataset: Dataset, shard: Shard) -> bool:
    path = files.join(dataset.path, shard.path)
    return dataset.cache is not None and dataset.cache.drop_damaged(path, shard)


def open_shard(dataset: Dataset, shard: Shard) -> BinaryIO:
    """Opens a shard, or its local copy; DamagedShard if it is not there or comes damaged."""
    path = files.join(dataset.path, shard.path)
    try:
        if dataset.cache is not None and files.is_remote(path):
            return dataset.cache.open(path, shard)
        return files.open_binary(path)
    except FileNotFoundError:
        raise DamagedShard(f"shard {path} is missing") from None
    except files.read_errors() as error:
        raise DamagedShard(f"shard {path} cannot be read: {files.reason(error)}") from None


def _decoded(dataset: Dataset, file: BinaryIO, shard: Shard, skip: int) -> Iterator[Block]:
    """Yields the blocks of a shard after the first `skip`."""
    manifest = dataset.manifest
    stream = unpacked(file, manifest.compression)
    if manifest.layout == "blocks":
        for payload in read_records(stream, skip):
            yield decode_block(manifest.features, payload)
    else:
        records = read_records(stream, skip * manifest.block_rows)
        yield from decode_rows(manifest, records, shard, skip)


def read_rows(
    dataset: Dataset, split: str, start: int = 0, end: int | None = None
) -> Iterator[Block]:
    """Yields rows start..end of a split in stored order, a block at a time.

    Raises:
      UsageError: the split is not there.
      DamagedShard: a record is cut or altered, or rows are missing.
    """
    reader = ShardReader(dataset, split)
    block_rows = dataset.manifest.block_rows
    first = 0
    for number, shard in enumerate(dataset.split(split).shards):
        low = max(start - first, 0)
        high = min((end if end is not None else first + shard.rows) - first, shard.rows)
        while low < high:
            stop = min(high, (low // block_rows + 1) * block_rows)
            yield reader.read(number, low, stop)
            low = stop
        first += shard.rows
    reader.close()


def raw_features(dataset: Dataset, block: Block, names: Sequence[str]) -> dict[str, Any]:
    """Returns columns as a served request brings them.

    float32 or int64 arrays [n] (lists: [n, k]), strings as object arrays of bytes; null is NaN,
    the smallest int64, or b"". A variable-length column is a list of n arrays.
    """
    columns: dict[str, Any] = {}
    for name in names:
        feature = dataset.manifest.feature(name)
        column = block.column(feature)
        values: Any = column.values
        if feature.dictionary is not None:
            values = decode_codes(values, feature.dictionary)
        if column.splits is not None:
            values = np.split(values, column.splits[1:-1])
        columns[name] = values
    return columns


def decode_codes(codes: Array, dictionary: Sequence[str]) -> npt.NDArray[np.object_]:
    """Returns the values behind int32 codes [n] as an object array of bytes; null is b""."""
    values = np.empty(len(dictionary) + 1, object)
    values[:-1] = [word.encode() for word in dictionary]
    values[NULL_CODE] = b""
    return values[codes.astype(np.int64)]


def label_values(dataset: Dataset, block: Block) -> Array:
    """Returns the label of each row [n].

    float32 0/1 (binary) or the value (regression), int32 class index (multiclass).
    """
    label = dataset.manifest.label
    feature = dataset.manifest.feature(label.name)
    values = block.column(feature).values
    if label.kind == "regression":
        return values.astype(np.float32)
    if feature.dictionary is not None:
        index = values
    else:
        index = np.searchsorted(np.asarray(label.classes), values)
    return index.astype(np.float32 if label.kind == "binary" else np.int32)
