"""Delimited text: every cell as text, and errors that name file, line and flag.

pyarrow parses; the header and the place of a fault are found by Python's csv module, which reads
quotes the same way (a quote that does not begin a field is a letter). Types are no business of this
module: pyarrow's own would depend on the first block.
"""

from __future__ import annotations

import codecs
import csv
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from components.shard_data.findings import Findings
from components.shard_data.formats import lines, quotes
from components.shard_data.formats.piece import Columns, Piece, Read, Rejected, too_many
from components.shard_data.formats.text import decoded, is_utf8
from components.shard_data.options import ShardOptions
from trainer.errors import UsageError

# A piece is one block of pyarrow's, which takes less than 2 GiB.
_LONGEST_RECORD = 1 << 26
_LONGEST_HEADER = 1 << 24
_LONG_CELL_LINES = 10


def cut(whole: Piece, options: ShardOptions, piece_bytes: int) -> list[Piece]:
    """Cuts between records; the first piece begins behind the header.

    Raises:
      UsageError: the file is empty, looks otherwise delimited, or a quote is never closed.
    """
    delimiter = delimiter_of(whole, options)
    with open(whole.path, "rb") as file:
        header, start = _header(whole.name, file, delimiter, options.skip_rows)
        if options.delimiter is None:
            _suspect_delimiter(whole.name, header, delimiter)
        _refuse_duplicates(whole.name, header)
        columns = tuple((column, "string") for column in header)
        ends = [start, *_ends(whole, file, start, delimiter, piece_bytes)]
    if len(ends) == 1:
        ends.append(start)
    return [
        replace(whole, start=begin, end=end, first=begin == start, columns=columns)
        for begin, end in itertools.pairwise(ends)
    ]


def read(piece: Piece, options: ShardOptions) -> Read:
    """Returns the cells of a piece.

    Raises:
      UsageError: the text is not UTF-8.
    """
    with open(piece.path, "rb") as file:
        file.seek(piece.start)
        text = file.read(piece.end - piece.start)
    if not is_utf8(text):
        with open(piece.path, "rb") as file:
            decoded(piece.name, text, 1 + lines.breaks_before(file, piece.start))
    table, rejected = _parse(piece, text, delimiter_of(piece, options), options)
    say = Findings()
    columns = _named(piece, table, say)
    _say_long_cells(piece.name, text, columns, say)
    rows = table.num_rows + len(rejected)
    kept = np.delete(np.arange(rows, dtype=np.int64), [bad.row for bad in rejected])
    return Read(columns, typed=False, rows=rows, kept=kept, rejected=rejected, say=say)


def place(piece: Piece, row: int, options: ShardOptions) -> str:
    """Returns file and line of a row."""
    with open(piece.path, "rb") as file:
        before = lines.breaks_before(file, piece.start)
        text = file.read(piece.end - piece.start)
    texts = (line.decode("utf-8", "replace") for line in lines.split([text]))
    found = itertools.islice(_records(texts, delimiter_of(piece, options)), row, None)
    return f"{piece.name}, line {before + next(found)[0]}"


def delimiter_of(piece: Piece, options: ShardOptions) -> str:
    """Returns what parts the fields of a text file."""
    return options.delimiter or ("\t" if piece.format == "tsv" else ",")


def _records(texts: Iterable[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yields (line where it begins, fields) of each record; slow, for headers and faults."""
    csv.field_size_limit(_LONGEST_RECORD)
    reader = csv.reader(texts, delimiter=delimiter)
    line = 1
    for record in reader:
        if record:
            yield line, record
        line = reader.line_num + 1


def _header(name: str, file: BinaryIO, delimiter: str, skip_rows: int) -> tuple[list[str], int]:
    """Returns the header's names and the offset of the byte after it."""
    bom = len(codecs.BOM_UTF8) if file.read(3) == codecs.BOM_UTF8 else 0
    file.seek(bom)
    skipped, taken = 0, bytearray()

    def texts() -> Iterator[str]:
        nonlocal skipped
        for number, line in enumerate(lines.split(lines.chunks_of(file)), 1):
            if number <= skip_rows:
                skipped += len(line)
                continue
            if len(taken) > _LONGEST_HEADER:
                break
            taken.extend(line)
            yield decoded(name, line, number)

    for _, record in _records(texts(), delimiter):
        first = skip_rows + 1
        if (quote := quotes.opened(bytes(taken), delimiter)) is not None:
            raise _never_ends(name, first + lines.breaks(bytes(taken[:quote])))
        if any("\0" in column for column in record):
            raise UsageError(
                f"{name}, line {first}: a zero byte is no text: say how the file is written, as in "
                "--encoding utf-16-le"
            )
        return record, bom + skipped + len(taken)
    raise UsageError(f"{name} is empty: it has neither a header nor rows")


def _ends(whole: Piece, file: BinaryIO, start: int, delimiter: str, piece_bytes: int) -> list[int]:
    """Returns the offsets where pieces end."""
    ends: list[int] = []
    file.seek(start)
    at, held = start, b""
    while more := file.read(max(piece_bytes, len(held))):
        held += more
        if end := quotes.last_end(held, delimiter):
            at += end
            held = held[end:]
            ends.append(at)
        elif len(held) > _LONGEST_RECORD:
            break
    if not held:
        return ends
    if more:
        raise UsageError(
            f"{whole.name}, line {1 + lines.breaks_before(file, at)}: a row of over "
            f"{_LONGEST_RECORD >> 20} MiB: does a quoted field begin and never end?"
        )
    if (quote := quotes.opened(held, delimiter)) is not None:
        raise _never_ends(whole.name, 1 + lines.breaks_before(file, at + quote))
    # What no line break ends belongs to the rows before it.
    return [*ends[:-1], at + len(held)]


def _never_ends(name: str, line: int) -> UsageError:
    return UsageError(f"{name}, line {line}: a quoted field begins and never ends")


def _suspect_delimiter(name: str, header: list[str], delimiter: str) -> None:
    if len(header) > 1:
        return
    for other in (";", "\t", "|", ","):
        if other != delimiter and other in header[0]:
            shown = "\\t" if other == "\t" else other
            raise UsageError(
                f"{name} has one column, {header[0][:40]!r}: say what parts the fields, "
                f"as in --delimiter '{shown}'"
            )


def _refuse_duplicates(name: str, header: list[str]) -> None:
    for column in header:
        if column and header.count(column) > 1:
            raise UsageError(
                f"{name} has {header.count(column)} columns called {column!r}: rename all but one"
            )


def _parse(
    piece: Piece, text: bytes, delimiter: str, options: ShardOptions
) -> tuple[pa.Table, tuple[Rejected, ...]]:
    """Returns the rows as columns "0", "1", …, and those left out."""
    bad: list[Rejected] = []

    def on_bad_row(row: Any) -> str:
        reason = f"{row.actual_columns} fields, the header has {row.expected_columns}"
        bad.append(Rejected(row.number - 1, reason))
        return "skip" if len(bad) <= options.max_bad_rows else "error"

    positions = [str(i) for i in range(len(piece.columns))]
    if not text:
        return pa.table({position: pa.array([], pa.string()) for position in positions}), ()
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(text),
            # In one thread rows have numbers. In one block no field is cut: a longer one fails, and
            # a quoted CRLF whose CR ends a block loses its LF (arrow#51368).
            read_options=arrow_csv.ReadOptions(
                use_threads=False, column_names=positions, block_size=len(text) + 1
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=delimiter, newlines_in_values=True, invalid_row_handler=on_bad_row
            ),
            convert_options=arrow_csv.ConvertOptions(
                check_utf8=False,
                column_types=dict.fromkeys(positions, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid as error:
        if len(bad) > options.max_bad_rows:
            raise too_many(place(piece, bad[-1].row, options), bad[-1]) from None
        raise UsageError(f"{piece.name} cannot be read: {' '.join(str(error).split())}") from None
    return table, tuple(bad)


def _named(piece: Piece, table: pa.Table, say: Findings) -> Columns:
    """Names the columns; a nameless one is an index, or empty, and kept out."""
    columns = {}
    for position, (column, _) in enumerate(piece.columns):
        values = table.column(position)
        if column:
            columns[column] = values
        elif position == 0 or values.null_count == len(values):
            say.drop_column(f"#{position + 1}", "it has no name in the header")
        else:
            raise UsageError(
                f"{piece.name}: column {position + 1} has no name in the header: name it"
            )
    return columns


def _say_long_cells(name: str, text: bytes, columns: Columns, say: Findings) -> None:
    rows = max((len(values) for values in columns.values()), default=0)
    if b'"' not in text or lines.breaks(text) - rows < _LONG_CELL_LINES:
        return
    for column, values in columns.items():
        most = pc.max(pc.count_substring(values, "\n")).as_py() or 0
        if most > _LONG_CELL_LINES:
            say.most(f"{name}: a quoted field of column {column} has", most + 1, "lines")
