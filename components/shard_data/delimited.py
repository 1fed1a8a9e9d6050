"""One delimited text file: every cell as text, and errors that name file, line and flag.

pyarrow parses; the header, the comments and the place of a fault are found by Python's csv module,
which reads quotes the same way (a quote that does not begin a field is a letter). Types are no
business of this module: pyarrow's own would depend on the first block.
"""

from __future__ import annotations

import codecs
import csv
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from components.shard_data.findings import Findings
from components.shard_data.options import ShardOptions
from trainer.errors import UsageError

# One block a file as far as may be: a quoted CRLF whose CR ends a block loses its LF, and a field
# longer than a block fails (arrow#51368).
_LARGEST_BLOCK = 1 << 30
_LONG_CELL_LINES = 10
_END = "\0end of file"


@dataclass(frozen=True)
class Text:
    """A file's cells. An unquoted empty field is null; a quoted one is empty text.

    columns: name to string arrays of equal length; skipped: which data rows (from 0) were ragged
    and left out.
    """

    columns: dict[str, pa.ChunkedArray]
    rows: int
    skipped: tuple[int, ...]


def read(
    name: str,
    data: bytes,
    delimiter: str,
    options: ShardOptions,
    *,
    allowance: int,
    say: Findings,
) -> Text:
    """Returns the cells of one file.

    Args:
      name: what errors call the file.
      data: its bytes, unpacked.
      delimiter: one character.
      options: encoding, comment, skip_rows.
      allowance: how many ragged rows may still be left out.
      say: takes the notes.

    Raises:
      UsageError: the file is empty, not in the encoding, ragged, or looks otherwise delimited.
    """
    text = prepare(name, data, delimiter, options)
    header, offset = _header(name, text, delimiter)
    if text.count(b'"') % 2 and any("\n" in column for column in header):
        _refuse_open_quote(name, text, delimiter)
    if options.delimiter is None:
        _suspect_delimiter(name, header, delimiter)
    _refuse_duplicates(name, header)
    table, bad = _parse(name, text, header, offset=offset, delimiter=delimiter, allowance=allowance)
    if text.count(b'"', offset) % 2:
        _refuse_open_quote(name, text, delimiter)
    columns = _named(name, header, table, say)
    if b'"' in text:
        _warn_of_long_cells(name, columns, say)
    return Text(columns, table.num_rows, tuple(number - 1 for number, _ in bad))


def prepare(name: str, data: bytes, delimiter: str, options: ShardOptions) -> bytes:
    """Returns the text as UTF-8 without BOM, skipped rows and comment lines blanked.

    Blank lines are no rows, and keep the numbers of those that follow.
    """
    text = _to_utf8(name, data, options.encoding)
    if options.skip_rows:
        skipped = list(itertools.islice(_lines(text), options.skip_rows))
        text = b"\n" * len(skipped) + text[sum(map(len, skipped)) :]
    if options.comment:
        text = _without_comments(text, options.comment.encode(), delimiter)
    return text


def line_of(text: bytes, delimiter: str, record: int) -> int:
    """Returns the line (from 1) where a record (the header is 0) of a prepared text begins."""
    return next(itertools.islice(_records(text, delimiter), record, None))[0]


def _to_utf8(name: str, data: bytes, encoding: str) -> bytes:
    if not data.strip():
        raise UsageError(f"{name} is empty: it has neither a header nor rows")
    if encoding == "utf-8":
        data = data.removeprefix(codecs.BOM_UTF8)
    try:
        decoded = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        raise UsageError(
            f"{name}, line {line}: byte 0x{data[error.start]:02x} is not {encoding}: say how the "
            f"file is written, as in --encoding {'utf-16' if wide else 'latin-1'}"
        ) from None
    except UnicodeError as error:  # of encodings that say less: idna, punycode
        raise UsageError(f"{name} is not {encoding}: {error}") from None
    return data if encoding == "utf-8" else decoded.encode()


def _lines(text: bytes) -> Iterator[bytes]:
    for match in re.finditer(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z", text):
        yield match[0]


def _records(text: bytes, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yields (line where it begins, fields) of each record; slow, for headers and faults."""
    csv.field_size_limit(_LARGEST_BLOCK)
    reader = csv.reader((line.decode() for line in _lines(text)), delimiter=delimiter)
    line = 1
    for record in reader:
        if record:
            yield line, record
        line = reader.line_num + 1


def _without_comments(text: bytes, comment: bytes, delimiter: str) -> bytes:
    """Blanks whole lines that begin with `comment`, unless a quoted field holds them."""
    kept = []
    between_records = True

    def lines() -> Iterator[str]:
        nonlocal between_records
        for line in _lines(text):
            is_comment = between_records and line.startswith(comment)
            kept.append(b"\n" if is_comment else line)
            between_records = False
            yield kept[-1].decode()

    csv.field_size_limit(_LARGEST_BLOCK)
    for _ in csv.reader(lines(), delimiter=delimiter):
        between_records = True
    return b"".join(kept)


def _header(name: str, text: bytes, delimiter: str) -> tuple[list[str], int]:
    """Returns the header's names and the offset of the byte after it."""
    consumed = 0
    csv.field_size_limit(_LARGEST_BLOCK)

    def lines() -> Iterator[str]:
        nonlocal consumed
        for line in _lines(text):
            consumed += len(line)
            yield line.decode()

    for record in csv.reader(lines(), delimiter=delimiter):
        if record:
            return record, consumed
    raise UsageError(f"{name} is empty: it has neither a header nor rows")


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
    name: str, text: bytes, header: list[str], *, offset: int, delimiter: str, allowance: int
) -> tuple[pa.Table, list[tuple[int, int]]]:
    """Returns the rows after the header, and (number from 1, fields) of those left out."""
    bad: list[tuple[int, int]] = []

    def on_bad_row(row: Any) -> str:
        bad.append((row.number, row.actual_columns))
        return "skip" if len(bad) <= allowance else "error"

    positions = [str(i) for i in range(len(header))]
    body = pa.py_buffer(text)[offset:]
    if not body.size:
        return pa.table({position: pa.array([], pa.string()) for position in positions}), bad
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(body),
            # In one thread rows have numbers.
            read_options=arrow_csv.ReadOptions(
                use_threads=False, column_names=positions, block_size=_block_size(text, offset)
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=delimiter, newlines_in_values=True, invalid_row_handler=on_bad_row
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(positions, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid as error:
        if not bad:
            raise UsageError(f"{name} cannot be read: {' '.join(str(error).split())}") from None
        number, fields = bad[-1]
        _refuse_open_quote(name, text, delimiter)
        raise UsageError(
            f"{name}, line {line_of(text, delimiter, number)}: {fields} fields, the header has "
            f"{len(header)}: mend the row, or leave such rows out with --max-bad-rows N"
        ) from None
    return table, bad


def _block_size(text: bytes, offset: int) -> int:
    size = min(len(text) - offset + 1, _LARGEST_BLOCK)
    while any(text[end - 1 : end] == b"\r" for end in range(offset + size, len(text), size)):
        size -= 1
    return size


def _refuse_open_quote(name: str, text: bytes, delimiter: str) -> None:
    """A quote that nothing closes would swallow the rest of the file as one field."""
    for line, record in _records(text + b"\n" + _END.encode(), delimiter):
        if record[-1].endswith(_END) and record != [_END]:
            raise UsageError(f"{name}, line {line}: a quoted field begins and never ends")


def _named(
    name: str, header: list[str], table: pa.Table, say: Findings
) -> dict[str, pa.ChunkedArray]:
    """Names the columns; a nameless one is an index, or empty, and kept out."""
    columns = {}
    for position, column in enumerate(header):
        values = table.column(position)
        if column:
            columns[column] = values
        elif values.null_count == len(values) or position == 0:
            what = "has no value" if values.null_count == len(values) else "an index of rows"
            reason = f"it has no name in the header ({what})"
            if not any(entry.get("reason") == reason for entry in say.dropped):
                say.drop_column(f"#{position + 1}", reason)
        else:
            raise UsageError(f"{name}: column {position + 1} has no name in the header: name it")
    return columns


def _warn_of_long_cells(name: str, columns: dict[str, pa.ChunkedArray], say: Findings) -> None:
    for column, values in columns.items():
        breaks = pc.max(pc.count_substring(values, "\n")).as_py() or 0
        if breaks > _LONG_CELL_LINES:
            say.note(f"{name}: a quoted field of column {column} has {breaks + 1} lines")
