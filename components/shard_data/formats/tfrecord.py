"""TFRecord files of tf.train.Example, decoded by tfx_bsl without TensorFlow.

What a feature is depends on the whole file, so `cut` decodes all of it once: a feature that never
has more than one value, and has none only where it is absent, is a column of scalars; any other one
is a column of lists.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from components.shard_data.formats.piece import Columns, Piece, Read
from components.shard_data.options import ShardOptions
from trainer.data.records import DamagedRecord, read_records
from trainer.errors import UsageError

# Length, its checksum, and the checksum of the payload.
_FRAME_BYTES = 16
_BATCH_BYTES = 1 << 22
_LIST = "list of "
_KIND_OF = {pa.int64(): "int64", pa.float32(): "float", pa.large_binary(): "binary"}
_TYPES = {kind: type_ for type_, kind in _KIND_OF.items()} | {"none": pa.null()}


class _OtherKind(Exception):
    """A feature has values of another kind than before."""


@dataclass
class _Feature:
    """What is known of a feature so far; `kind` of its lists: int64, float, binary or none yet."""

    kind: str = "none"
    is_list: bool = False


def cut(whole: Piece, options: ShardOptions, piece_bytes: int) -> list[Piece]:
    """Cuts between records, after a look at all of them.

    Raises:
      UsageError: a record is damaged, or no Example, or a feature has values of two kinds.
    """
    features: dict[str, _Feature] = {}
    ends, at = [0], 0
    for number, size, records in _batches(whole, min(piece_bytes, _BATCH_BYTES)):
        try:
            _learn(features, _decode(records))
        except (RuntimeError, _OtherKind):
            _learn_one_by_one(features, records, whole.name, number)
        if at > ends[-1] and at + size - ends[-1] > piece_bytes:
            ends.append(at)
        at += size
    columns = tuple(
        (name, _LIST * feature.is_list + feature.kind) for name, feature in sorted(features.items())
    )
    return [
        replace(whole, start=start, end=end, first=not start, columns=columns)
        for start, end in zip(ends, [*ends[1:], at], strict=True)
    ]


def read(piece: Piece, options: ShardOptions) -> Read:
    """Returns the rows of a piece: int64, float32 and binary, and lists of them.

    Raises:
      UsageError: a record is damaged.
    """
    with open(piece.path, "rb") as file:
        file.seek(piece.start)
        stretch = io.BytesIO(file.read(piece.end - piece.start))
    records = list(_records(piece.name, stretch))
    try:
        batch = _decode(records)
    except RuntimeError as error:
        raise UsageError(f"{piece.name}: {error}") from None
    columns: Columns = {}
    for name, kind in piece.columns:
        index = batch.schema.get_field_index(name)
        values = None if index < 0 else batch.column(index)
        columns[name] = pa.chunked_array([_column(values, kind, len(records))])
    return Read(columns, typed=True, rows=len(records), kept=np.arange(len(records)))


def place(piece: Piece, row: int, options: ShardOptions) -> str:
    """Returns file and number of a record, from 1."""
    with open(piece.path, "rb") as file:
        at = number = 0
        for record in _records(piece.name, file):
            if at >= piece.start:
                break
            at += len(record) + _FRAME_BYTES
            number += 1
    return f"{piece.name}, record {number + row + 1}"


def _records(name: str, file: BinaryIO) -> Iterator[bytes]:
    number = 1
    try:
        for record in read_records(file):
            yield record
            number += 1
    except DamagedRecord as error:
        what = re.sub(r"^record \d+:? ?", "", str(error))
        raise UsageError(f"{name}, record {number}: {what}: copy the file again") from None


def _batches(whole: Piece, size: int) -> Iterator[tuple[int, int, list[bytes]]]:
    """Yields (number of the first one from 1, bytes in the file, records)."""
    with open(whole.path, "rb") as file:
        number, held, records = 1, 0, []
        for record in _records(whole.name, file):
            records.append(record)
            held += len(record) + _FRAME_BYTES
            if held >= size:
                yield number, held, records
                number, held, records = number + len(records), 0, []
        if records:
            yield number, held, records


def _decode(records: list[bytes]) -> pa.RecordBatch:
    """Returns the features as large lists; RuntimeError at what is no Example."""
    from tfx_bsl.coders.example_coder import ExamplesToRecordBatchDecoder

    if not records:
        return pa.record_batch({})
    return ExamplesToRecordBatchDecoder().DecodeBatch(records)


def _learn(features: dict[str, _Feature], batch: pa.RecordBatch) -> None:
    for column, values in zip(batch.schema, batch.columns, strict=True):
        feature = features.setdefault(column.name, _Feature())
        if pa.types.is_null(values.type):
            continue
        feature.is_list |= bool(pc.any(pc.not_equal(pc.list_value_length(values), 1)).as_py())
        kind = _KIND_OF[values.type.value_type]
        if feature.kind not in ("none", kind):
            raise _OtherKind(f"{column.name!r} has {kind} values, and {feature.kind} ones before")
        feature.kind = kind


def _learn_one_by_one(
    features: dict[str, _Feature], records: list[bytes], name: str, number: int
) -> None:
    """Finds the record that is at fault."""
    for at, record in enumerate(records, number):
        try:
            _learn(features, _decode([record]))
        except RuntimeError:
            raise UsageError(f"{name}, record {at}: not a tf.train.Example") from None
        except _OtherKind as error:
            raise UsageError(f"{name}, record {at}: feature {error}: write one kind") from None


def _column(values: pa.Array | None, kind: str, rows: int) -> pa.Array:
    """Returns a feature's column [rows]; null where it is absent."""
    inner = _TYPES[kind.removeprefix(_LIST)]
    is_list = kind.startswith(_LIST)
    if values is None or pa.types.is_null(values.type):
        return pa.nulls(rows, pa.large_list(inner) if is_list else inner)
    values = values.cast(pa.large_list(inner))
    if is_list:
        return values
    present = pc.cumulative_sum(values.is_valid().cast(pa.int64()))
    index = pc.if_else(values.is_valid(), pc.subtract(present, 1), None)
    return values.flatten().take(index)
