"""Phase 1, a piece at a time: read it, keep its columns as read, and say what they look like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict

from components.shard_data import formats, work
from components.shard_data.findings import Findings
from components.shard_data.formats import Read
from components.shard_data.inputs import Piece
from components.shard_data.options import ShardOptions
from components.shard_data.types import typed
from components.shard_data.types.look import Place, look
from components.shard_data.types.profile import LARGEST_DICTIONARY, MOST_CLASSES, Profile
from components.shard_data.types.texts import Texts, null_texts
from components.shard_data.work import Work

_NUMBER_BYTES = 8


@dataclass(frozen=True)
class Job:
    """One piece to read."""

    number: int
    piece: Piece
    options: ShardOptions
    work: Work


class Scanned(BaseModel):
    """What a piece says. `rows` counts damaged ones too, `kept` doesn't; `size`: bytes."""

    model_config = ConfigDict(frozen=True)

    rows: int
    kept: int
    size: int
    typed: bool
    columns: dict[str, Profile]
    names: tuple[str, ...]
    rejected: tuple[tuple[int, str], ...] = ()
    notes: tuple[str, ...] = ()
    dropped: tuple[dict[str, Any], ...] = ()
    counts: tuple[tuple[str, int, str], ...] = ()
    peaks: tuple[tuple[str, int, str], ...] = ()

    def tell(self, say: Findings) -> None:
        """Adds what its reader had to say."""
        say.add(Findings(list(self.notes), list(self.dropped)))
        for count in self.counts:
            say.count(*count)
        for peak in self.peaks:
            say.most(*peak)


def run(job: Job) -> Scanned:
    """Returns what the piece says; its columns lie in the work directory.

    If an earlier run has left both, nothing is read.

    Raises:
      UsageError: the piece cannot be read, or a column is of a type that is not read.
    """
    done = job.work.path("scan", job.number, ".json")
    if done.exists():
        return Scanned.model_validate_json(done.read_text("utf-8"))
    read = formats.read(job.piece, job.options)
    scanned = _scan(job, read)
    work.write_text(done, scanned.model_dump_json())
    return scanned


def _scan(job: Job, read: Read) -> Scanned:
    options = job.options
    place = Place(job.number, job.piece.name)
    arrays = {work.ROW: pa.array(np.asarray(read.kept, np.int64))}
    columns = {}
    for name, column in read.columns.items():
        if name in options.drop and name not in options.split_columns:
            continue
        arrays[name], columns[name] = _column(name, column, read, options, place)
    batch = pa.record_batch(list(arrays.values()), names=list(arrays))
    work.write_batches(job.work.path("scan", job.number, ".arrow"), [batch])
    return Scanned(
        rows=read.rows,
        kept=len(read.kept),
        size=sum(_size(array) for array in batch.columns[1:]),
        typed=read.typed,
        columns=columns,
        names=tuple(read.columns),
        rejected=tuple((bad.row, bad.reason) for bad in read.rejected),
        notes=tuple(read.say.notes),
        dropped=tuple(read.say.dropped),
        counts=tuple((a, figure, b) for (a, b), figure in read.say.counts.items()),
        peaks=tuple((a, figure, b) for (a, b), figure in read.say.peaks.items()),
    )


def _size(array: pa.Array) -> int:
    """Bytes of a column's values, the same wherever pieces end."""
    if pa.types.is_dictionary(array.type):
        lengths = pc.binary_length(array.dictionary).take(array.indices)
        return int(pc.sum(lengths).as_py() or 0) + _NUMBER_BYTES * len(array)
    if pa.types.is_large_binary(array.type):
        return int(pc.sum(pc.binary_length(array)).as_py() or 0)
    values = array.flatten() if pa.types.is_nested(array.type) else array
    if pa.types.is_large_string(values.type):
        return int(pc.sum(pc.binary_length(values)).as_py() or 0)
    return _NUMBER_BYTES * len(values)


def _column(
    name: str, column: pa.ChunkedArray, read: Read, options: ShardOptions, place: Place
) -> tuple[pa.Array, Profile]:
    most_words = MOST_CLASSES if name == options.label else LARGEST_DICTIONARY
    written = name in read.as_written and name not in options.types
    if written or (name in options.drop and name != options.split_time):
        # Only here to part by: its texts are enough.
        types = {**options.types, name: "string"}
        options = options.model_copy(update={"types": types})
    if read.typed and name not in read.as_written:
        found = typed.settle(name, column, options, place, most_words)
        return found.array, found.profile
    texts = null_texts(Texts.of(name, column), options)
    return texts.to_arrow(), look(texts, options, place, most_words)
