"""All source files as one table, columns by name, rows in the order of the files.

Text files give text columns, typed ones typed columns; what the values mean is decided later, over
all of it. The table knows where each row stands, for errors.
"""

from __future__ import annotations

import functools
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from components.shard_data import delimited, parquet, sources
from components.shard_data.findings import Findings
from components.shard_data.options import ShardOptions
from trainer.errors import UsageError, suggestion

Columns = dict[str, pa.ChunkedArray]


@dataclass(frozen=True)
class Part:
    """One file's rows: `first` is the number of its first row over all files, damaged ones too."""

    name: str
    columns: Columns
    partitions: tuple[tuple[str, str | None], ...]
    row_id: npt.NDArray[np.int64]
    first: int
    place: Callable[[int], str]


@dataclass(frozen=True)
class Table:
    """Columns [rows] as read. `typed`: they have declared types; `as_written`: text whatever."""

    columns: Columns
    typed: bool
    as_written: frozenset[str]
    row_id: npt.NDArray[np.int64]
    parts: tuple[Part, ...]

    def where(self, row: int) -> str:
        """Returns file and line (typed files: row) of a row."""
        number = int(self.row_id[row])
        part = self.parts[bisect_right([p.first for p in self.parts], number) - 1]
        return part.place(number - part.first)


def read(
    files: Sequence[sources.SourceFile],
    options: ShardOptions,
    say: Findings,
    report: Callable[[str], None],
) -> Table:
    """Returns the rows of all files.

    Raises:
      UsageError: a file cannot be read, has no rows, or the files' columns don't fit together;
        an option names a column that is nowhere.
    """
    parts: list[Part] = []
    formats: dict[bool, str] = {}
    for part, typed in _parts(files, options, say):
        formats.setdefault(typed, part.name)
        report(f"read {part.name}: {len(part.row_id):,} rows")
        parts.append(part)
    if len(formats) > 1:
        raise UsageError(
            f"{formats[True]} is Parquet and {formats[False]} is text: shard one kind at a time"
        )
    _check_names(parts, options)
    parts = [_without_dropped(part, options) for part in parts]
    if not any(len(part.row_id) for part in parts):
        raise UsageError(f"{parts[0].name} has a header and no rows")
    for part in parts:
        if not len(part.row_id):
            say.note(f"{part.name} has a header and no rows")
    for name in options.drop:
        say.drop_column(name, f"--drop {name}")
    typed = True in formats
    return Table(
        columns=_together(parts, options, typed),
        typed=typed,
        as_written=frozenset(name for part in parts for name, _ in part.partitions),
        row_id=np.concatenate([part.row_id for part in parts]),
        parts=tuple(parts),
    )


def _parts(
    files: Sequence[sources.SourceFile], options: ShardOptions, say: Findings
) -> Iterator[tuple[Part, bool]]:
    first = size = bad = 0
    for file in files:
        for member in sources.members(file.path, any_text=options.delimiter is not None):
            size += len(member.data)
            if size > options.memory:
                raise UsageError(
                    f"the sources hold more than --memory ({options.memory / (1 << 30):g} GiB) "
                    "unpacked: raise it, or shard fewer files"
                )
            if member.format == "parquet":
                columns = parquet.read(member.name, member.data, say)
                rows = len(next(iter(columns.values()))) if columns else 0
                kept = np.arange(rows, dtype=np.int64)
                place = functools.partial(_row_of, member.name)
            else:
                delimiter = options.delimiter or ("\t" if member.format == "tsv" else ",")
                allowance = options.max_bad_rows - bad
                text = delimited.read(
                    member.name, member.data, delimiter, options, allowance=allowance, say=say
                )
                columns, rows = text.columns, text.rows + len(text.skipped)
                kept = np.delete(np.arange(rows, dtype=np.int64), text.skipped)
                bad += len(text.skipped)
                if text.skipped:
                    say.drop_rows(len(text.skipped), f"{member.name}: not as many fields as the "
                                  "header")  # fmt: skip
                place = functools.partial(_line_of, file.path, member.name, delimiter, options)
            _add_partitions(member.name, columns, file.partitions, len(kept))
            yield (
                Part(member.name, columns, file.partitions, kept + first, first, place),
                member.format == "parquet",
            )
            first += rows


def _add_partitions(
    name: str, columns: Columns, partitions: tuple[tuple[str, str | None], ...], rows: int
) -> None:
    for key, value in partitions:
        if key in columns:
            raise UsageError(f"{name}: column {key!r} is in the file and in its folder's name")
        constant = pa.array([value], pa.string()).take(pa.array(np.zeros(rows, np.int64)))
        columns[key] = pa.chunked_array([constant])


def _row_of(name: str, row: int) -> str:
    return f"{name}, row {row + 1}"


def _line_of(path: str, name: str, delimiter: str, options: ShardOptions, row: int) -> str:
    """Reads the file once more: only errors need the line."""
    for member in sources.members(path, any_text=True):
        if member.name == name:
            text = delimited.prepare(name, member.data, delimiter, options)
            return f"{name}, line {delimited.line_of(text, delimiter, row + 1)}"
    return _row_of(name, row)


def _check_names(parts: Sequence[Part], options: ShardOptions) -> None:
    known = list(dict.fromkeys(name for part in parts for name in part.columns))
    asked = [("--label", options.label)]
    asked += [("--drop", name) for name in options.drop]
    asked += [("--type", name) for name in options.types]
    asked += [("--null-value", name) for name in options.null_by_column]
    if options.split_by is not None:
        asked.append(("--split-by", options.split_by))
    for flag, name in asked:
        if name not in known:
            more = "" if flag != "--null-value" else f"; for the text itself write ={name}=…"
            raise UsageError(
                f"{flag} {name}: {parts[0].name} has no such column"
                f"{suggestion(name, known)} (it has {', '.join(known)}){more}"
            )


def _without_dropped(part: Part, options: ShardOptions) -> Part:
    """Leaves out columns before anything looks at them; the one to split by is still needed."""
    gone = set(options.drop) - {options.split_by}
    columns = {name: values for name, values in part.columns.items() if name not in gone}
    return Part(part.name, columns, part.partitions, part.row_id, part.first, part.place)


def _together(parts: Sequence[Part], options: ShardOptions, typed: bool) -> Columns:
    names = list(dict.fromkeys(name for part in parts for name in part.columns))
    if options.missing_columns == "error":
        for part in parts[1:]:
            _compare(parts[0], part)
    together = {}
    for name in names:
        kind = _type_of(name, parts) if typed else pa.string()
        together[name] = pa.chunked_array(
            [chunk for part in parts for chunk in _chunks(part, name, kind)], kind
        )
    return together


def _compare(one: Part, other: Part) -> None:
    remedy = "mend it, or take it as null with --missing-columns null"
    for name in one.columns:
        if name not in other.columns:
            raise UsageError(f"{other.name} lacks column {name!r} that {one.name} has: {remedy}")
    for name in other.columns:
        if name not in one.columns:
            raise UsageError(f"{other.name} has column {name!r} that {one.name} lacks: {remedy}")


def _type_of(name: str, parts: Sequence[Part]) -> pa.DataType:
    kind, owner = pa.null(), parts[0]
    for part in parts:
        if name not in part.columns:
            continue
        common = parquet.common_type(kind, part.columns[name].type)
        if common is None:
            raise UsageError(
                f"column {name!r} is {kind} in {owner.name} and {part.columns[name].type} in "
                f"{part.name}: write both with one type"
            )
        if common != kind:
            kind, owner = common, part
    return kind


def _chunks(part: Part, name: str, kind: pa.DataType) -> list[pa.Array]:
    if name not in part.columns:
        return [pa.nulls(len(part.row_id), kind)]
    values = part.columns[name]
    try:
        return list((values if values.type == kind else values.cast(kind)).chunks)
    except pa.ArrowInvalid as error:
        raise UsageError(f"{part.name}: column {name!r} does not fit {kind}: {error}") from None
