"""A source file made ready: unpacked, as UTF-8, on this machine, and cut into pieces.

What lies there like that already is read where it lies. Anything else is streamed into the work
directory, in bounded memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import BinaryIO

from fsspec.core import url_to_fs

from components.shard_data import formats
from components.shard_data.formats import delimited, lines, parquet
from components.shard_data.formats.piece import Piece
from components.shard_data.inputs import bigquery, labels, pictures, text, unpack
from components.shard_data.inputs.find import SourceFile
from components.shard_data.inputs.kinds import HEAD_BYTES, format_of
from components.shard_data.inputs.labels import Labels
from components.shard_data.options import ShardOptions
from trainer import files
from trainer.errors import UsageError


def prepare(file: SourceFile, work: Path, options: ShardOptions, piece_bytes: int) -> list[Piece]:
    """Returns the pieces of a file, in its order; a file without rows has an empty one.

    Args:
      file: what to read.
      work: a directory to unpack into; files of different sources get different names in it.
      options: how text is written.
      piece_bytes: about how large a piece is.

    Raises:
      UsageError: the file cannot be read, is damaged, or of a format that is not read.
    """
    folder = work / hashlib.sha256(file.path.encode()).hexdigest()[:16]
    if file.images:
        whole = pictures.index(file, folder, _labels(work, options, piece_bytes))
        return formats.cut(whole, options, piece_bytes)
    if options.labels is not None:
        raise UsageError(f"--labels {options.labels}: {file.path} is no folder of images")
    if file.path.startswith(bigquery.SCHEME):
        tables = bigquery.fetch(file.path, folder)
        return [piece for one in tables for piece in formats.cut(one, options, piece_bytes)]
    local = None if files.is_remote(file.path) else url_to_fs(file.path)[1]
    opener = partial(files.open_binary, file.path)
    pieces: list[Piece] = []
    for number, stream in enumerate(unpack.unpacked(file.path, opener, local, folder)):
        with unpack.reading(stream.name), stream.open() as source:
            head = source.read(HEAD_BYTES)
        kind = format_of(stream.name, head, any_text=options.delimiter is not None)
        whole = Piece(stream.name, kind, "", 0, 0, first=True, partitions=file.partitions)
        path = _plain(whole, stream, folder / f"{number:05d}", options)
        whole = _seekable(replace(whole, path=path), folder / f"{number:05d}.arrow", piece_bytes)
        pieces += formats.cut(whole, options, piece_bytes)
    return pieces


def _labels(work: Path, options: ShardOptions, piece_bytes: int) -> Labels | None:
    if options.labels is None:
        return None
    plain = ShardOptions(sources=(options.labels,), output=options.output, label=options.label)
    pieces = prepare(SourceFile(options.labels), work, plain, piece_bytes)
    return labels.read(options.labels, pieces, plain)


def _plain(whole: Piece, stream: unpack.Stream, target: Path, options: ShardOptions) -> str:
    """Returns the local path of a file as it can be read."""
    has_comments = whole.format in ("csv", "tsv") and options.comment is not None
    is_text = whole.format in ("csv", "tsv", "jsonl")
    as_it_lies = not has_comments and (options.encoding == "utf-8" or not is_text)
    if stream.path is not None and as_it_lies:
        return stream.path
    change = lines.chunks_of if as_it_lies else partial(_rewritten, whole, options)
    unpack.copy(stream, target, change)
    return str(target)


def _seekable(whole: Piece, target: Path, piece_bytes: int) -> Piece:
    """Returns the file, as Arrow if parts of it could not be read by themselves."""
    if whole.format != "parquet" or not parquet.has_large_groups(whole, piece_bytes):
        return whole
    parquet.to_arrow(whole, target)
    return replace(whole, format="arrow", path=str(target))


def _rewritten(whole: Piece, options: ShardOptions, source: BinaryIO) -> Iterator[bytes]:
    chunks = lines.chunks_of(source)
    if options.encoding != "utf-8":
        chunks = text.to_utf8(whole.name, chunks, options.encoding)
    if options.comment is not None and whole.format != "jsonl":
        delimiter = delimited.delimiter_of(whole, options)
        chunks = text.without_comments(chunks, options.comment, options.skip_rows, delimiter)
    return chunks
