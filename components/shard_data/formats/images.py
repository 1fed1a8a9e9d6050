"""Image files: `image` holds a file's bytes, `path` where it lies in its folder, then its labels.

A piece is a stretch of an index, which `inputs.pictures` writes: a line of JSON for each image. The
line before them holds what is to be said of the folder.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from components.shard_data.findings import Findings
from components.shard_data.formats.piece import Columns, Piece, Read, Rejected, too_many
from components.shard_data.formats.pixels import Damaged, checked
from components.shard_data.options import ShardOptions
from trainer.errors import UsageError

IMAGE, PATH, LABEL = "image", "path", "label"
Entry = tuple[str, str, int, list[str | None]]


def write_index(target: Path, notes: Sequence[str], entries: Iterable[Entry]) -> None:
    """Writes an index.

    Args:
      target: a new file.
      notes: what is to be said of the folder.
      entries: path within the folder, path on this machine, bytes, and labels of each image.
    """
    with target.open("w", encoding="utf-8") as file:
        file.write(json.dumps(list(notes)) + "\n")
        file.writelines(json.dumps(entry) + "\n" for entry in entries)


def cut(whole: Piece, options: ShardOptions, piece_bytes: int) -> list[Piece]:
    """Cuts an index so that the images of a piece have about `piece_bytes`."""
    with open(whole.path, "rb") as file:
        start = at = len(file.readline())
        ends, held = [], 0
        for line in file:
            size = json.loads(line)[2]
            if held and held + size > piece_bytes:
                ends.append(at)
                held = 0
            held += size
            at += len(line)
    starts = [start, *ends]
    return [
        replace(whole, start=begin, end=end, first=begin == start)
        for begin, end in zip(starts, [*ends, at], strict=True)
    ]


def read(piece: Piece, options: ShardOptions) -> Read:
    """Returns the images of a piece; each is decoded, to see whether it can be.

    Raises:
      UsageError: more are damaged than are allowed, or one is gone.
    """
    say = Findings()
    with open(piece.path, "rb") as file:
        notes = json.loads(file.readline())
        if piece.first:
            for note in notes:
                say.note(note)
    rows: list[list[str | None]] = []
    files: list[bytes] = []
    kept: list[int] = []
    rejected: list[Rejected] = []
    for row, (name, path, _, labels) in enumerate(_entries(piece)):
        try:
            data, why = checked(_bytes(piece, name, path))
        except Damaged as error:
            rejected.append(Rejected(row, str(error)))
            if len(rejected) > options.max_bad_rows:
                raise too_many(f"{piece.name}/{name}", rejected[-1]) from None
            continue
        if why:
            say.count(f"{piece.name}: stored as PNG, {why}:", 1, "image(s)")
        files.append(data)
        kept.append(row)
        rows.append([name, *labels])
    names = [PATH, *(name for name, _ in piece.columns)]
    columns: Columns = {IMAGE: pa.chunked_array([pa.array(files, pa.large_binary())])}
    for i, name in enumerate(names):
        columns[name] = pa.chunked_array([pa.array([row[i] for row in rows], pa.string())])
    return Read(
        columns,
        typed=True,
        rows=len(kept) + len(rejected),
        kept=np.array(kept, np.int64),
        rejected=tuple(rejected),
        say=say,
    )


def place(piece: Piece, row: int, options: ShardOptions) -> str:
    """Returns the path of an image."""
    for number, (name, *_) in enumerate(_entries(piece)):
        if number == row:
            return f"{piece.name}/{name}"
    return f"{piece.name}, image {row + 1}"


def _entries(piece: Piece) -> Iterator[Entry]:
    with open(piece.path, "rb") as file:
        file.seek(piece.start)
        text = file.read(piece.end - piece.start)
    for line in text.splitlines():
        yield json.loads(line)


def _bytes(piece: Piece, name: str, path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise UsageError(f"cannot read {piece.name}/{name}: {error.strerror or error}") from None
