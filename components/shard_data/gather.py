"""All pieces together: prepared, scanned, their columns compared; where each row stands."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from components.shard_data import formats, inputs, work
from components.shard_data.append import Base
from components.shard_data.engine import Engine
from components.shard_data.findings import Findings
from components.shard_data.inputs import Piece, SourceFile
from components.shard_data.options import ShardOptions
from components.shard_data.phases import scan
from components.shard_data.phases.scan import Scanned
from components.shard_data.progress import Progress, Report
from components.shard_data.types.profile import (
    LARGEST_DICTIONARY,
    MOST_CLASSES,
    Mark,
    Profile,
    Sum,
)
from components.shard_data.work import Work
from trainer.errors import UsageError, suggestion

# Formats without types.
_TEXT = ("csv", "tsv")


@dataclass(frozen=True)
class Gathered:
    """The input as a whole: its pieces in order, what each says, and all say of each column."""

    pieces: tuple[Piece, ...]
    scanned: tuple[Scanned, ...]
    profiles: Mapping[str, Profile]
    options: ShardOptions
    work: Work
    first_row: int = 0

    @property
    def rows(self) -> int:
        """Rows of all pieces, damaged ones too."""
        return sum(some.rows for some in self.scanned)

    @property
    def names(self) -> list[str]:
        """The columns of all pieces, in the order in which they come up; left-out ones aren't."""
        return [name for name in self.profiles if name not in self.hidden]

    @functools.cached_property
    def hidden(self) -> frozenset[str]:
        """Keys of JSON that are an object in some rows, their columns `key.…`, and null in others.

        Raises:
          UsageError: other rows have a value instead of the object.
        """
        origin: dict[str, str] = {}
        for piece, some in zip(self.pieces, self.scanned, strict=True):
            if piece.format == "jsonl":
                origin.update((name, piece.name) for name in some.names if name not in origin)
        parts = (name.split(".") for name in origin)
        outer = {".".join(part[:i]) for part in parts for i in range(1, len(part))}
        for name in outer & origin.keys():
            profile = self.profiles.get(name, Profile(kind="null"))
            if profile.kind != "null":
                raise UsageError(
                    f"column {name} is {profile.declared} and an object in {origin[name]}: "
                    "write one kind"
                )
        return frozenset(outer & origin.keys())

    @property
    def size(self) -> int:
        """Bytes of all values: numbers take eight, texts their length."""
        return sum(some.size for some in self.scanned)

    @property
    def firsts(self) -> list[int]:
        """The number of each piece's first row, damaged rows counted."""
        counts = (some.rows for some in self.scanned)
        return list(itertools.accumulate(counts, initial=self.first_row))[:-1]

    def where(self, mark: Mark) -> str:
        """Returns file and line (typed formats: row) of a mark's first row."""
        path = self.work.path("scan", mark.piece, ".arrow")
        row = work.read_batch(path, 0).column(work.ROW)[mark.row].as_py()
        return formats.place(self.pieces[mark.piece], row, self.options)


@dataclass(frozen=True)
class _Preparation:
    """One file to make ready."""

    number: int
    file: SourceFile
    options: ShardOptions
    work: Work
    piece_bytes: int


def _prepare(job: _Preparation) -> list[Piece]:
    return inputs.prepare(job.file, job.work.unpacked(job.number), job.options, job.piece_bytes)


def gather(
    files: Sequence[SourceFile],
    options: ShardOptions,
    place: Work,
    engine: Engine,
    say: Findings,
    report: Report,
    *,
    piece_bytes: int,
    total_bytes: int,
    base: Base | None = None,
) -> Gathered:
    """Reads all files once.

    Raises:
      UsageError: a file cannot be read, has no rows, or the files' columns don't fit together;
        an option names a column that is nowhere; more damaged rows than are allowed.
    """
    preparations = [
        _Preparation(number, file, options, place, piece_bytes) for number, file in enumerate(files)
    ]
    pieces = [piece for some in engine.run(_prepare, preparations) for piece in some]
    _refuse_mixed_kinds(pieces)
    if all(piece.format in _TEXT for piece in pieces):  # headers are known before all is read
        _check_names(_in_headers(pieces), pieces[0], options)
    asked = options
    if base is not None and pieces[0].format in _TEXT:
        options = options.model_copy(update={"types": {**base.types, **options.types}})
    jobs = [scan.Job(number, piece, options, place) for number, piece in enumerate(pieces)]
    sums: dict[str, Sum] = {}
    scanned = []
    for some in _scanned(engine, jobs, report, total_bytes):
        _add(some, sums, options)
        # What a piece says of its columns is in the sums: of many pieces it would be much to hold.
        scanned.append(some.model_copy(update={"columns": {}}))
    profiles = {name: total.total() for name, total in sums.items()}
    gathered = Gathered(
        tuple(pieces),
        tuple(scanned),
        profiles,
        options,
        place,
        0 if base is None else base.first_row,
    )
    _check_names([name for some in scanned for name in some.names], pieces[0], asked)
    _compare(gathered)
    _count_rejected(gathered, say)
    _tell_of_empty(gathered, say)
    for some in scanned:
        some.tell(say)
    return gathered


def _add(some: Scanned, sums: dict[str, Sum], options: ShardOptions) -> None:
    for name, profile in some.columns.items():
        if name not in sums:
            most = MOST_CLASSES if name == options.label else LARGEST_DICTIONARY
            sums[name] = Sum(name, most)
        sums[name].add(profile)


def _scanned(
    engine: Engine, jobs: Sequence[scan.Job], report: Report, total_bytes: int
) -> Iterator[Scanned]:
    """Yields what pieces say; a line for each file that is read wholly."""
    progress = Progress("read", len(jobs), report)
    rows = 0
    for job, some in zip(jobs, engine.run(scan.run, jobs), strict=True):
        rows += some.rows
        name = job.piece.name
        is_last = job.number + 1 == len(jobs) or jobs[job.number + 1].piece.name != name
        progress.add(total_bytes // len(jobs), some.rows, name)
        if is_last:
            report(f"read {name}: {rows:,} rows")
            rows = 0
        yield some


def _refuse_mixed_kinds(pieces: Sequence[Piece]) -> None:
    first: dict[bool, Piece] = {}
    for piece in pieces:
        first.setdefault(piece.format in _TEXT, piece)
    if len(first) > 1:
        raise UsageError(
            f"{first[False].name} declares types ({first[False].format}) and {first[True].name} "
            "is text: shard one kind at a time"
        )


def _in_headers(pieces: Sequence[Piece]) -> list[str]:
    columns = [name for piece in pieces for name, _ in (*piece.columns, *piece.partitions)]
    return [name for name in columns if name]


def _check_names(names: Sequence[str], first: Piece, options: ShardOptions) -> None:
    known = list(dict.fromkeys(names))
    asked = [("--label", options.label)]
    asked += [("--drop", name) for name in options.drop]
    asked += [("--type", name) for name in options.types]
    asked += [("--null-value", name) for name in options.null_by_column]
    asked += [("--split-by", name) for name in options.split_by]
    asked += [("--split-time", name) for name in [options.split_time] if name is not None]
    asked += [("--split-column", name) for name in [options.split_column] if name is not None]
    for flag, name in asked:
        if name not in known:
            more = "" if flag != "--null-value" else f"; for the text itself write ={name}=…"
            raise UsageError(
                f"{flag} {name}: {first.name} has no such column"
                f"{suggestion(name, known)} (it has {', '.join(known)}){more}"
            )


def _compare(gathered: Gathered) -> None:
    """Columns go by name; a file with more or fewer is a mistake, unless told otherwise."""
    if gathered.options.missing_columns == "null":
        return
    # By file: a piece of JSON lines may lack keys that another one has. A file of no rows may have
    # no columns.
    files: dict[str, dict[str, None]] = {}
    for piece, some in zip(gathered.pieces, gathered.scanned, strict=True):
        files.setdefault(piece.name, {}).update(dict.fromkeys(some.names))
    files = {file: names for file, names in files.items() if names}
    dropped = {*gathered.options.drop, *gathered.hidden}
    remedy = "mend it, or take it as null with --missing-columns null"
    first = next(iter(files), "")
    for file, names in files.items():
        for name in files[first]:
            if name not in names and name not in dropped:
                raise UsageError(f"{file} lacks column {name!r} that {first} has: {remedy}")
        for name in names:
            if name not in files[first] and name not in dropped:
                raise UsageError(f"{file} has column {name!r} that {first} lacks: {remedy}")


def _count_rejected(gathered: Gathered, say: Findings) -> None:
    counted: dict[str, int] = {}
    first: dict[str, str] = {}
    total = 0
    for piece, some in zip(gathered.pieces, gathered.scanned, strict=True):
        for row, reason in some.rejected:
            total += 1
            if total > gathered.options.max_bad_rows:
                raise formats.refusal(piece, formats.Rejected(row, reason), gathered.options)
            counted[piece.name] = counted.get(piece.name, 0) + 1
            first.setdefault(piece.name, reason)
    for name, rows in counted.items():
        more = ", …: see rejected.jsonl" if rows > 1 else ""
        say.drop_rows(rows, f"{name}: {first[name]}{more}")


def rejected_lines(gathered: Gathered) -> Iterator[str]:
    """Yields a JSON object for each row that was left out: its number, where it stands, and why."""
    for piece, some, first in zip(gathered.pieces, gathered.scanned, gathered.firsts, strict=True):
        for row, reason in some.rejected:
            where = formats.place(piece, row, gathered.options)
            yield json.dumps({"row_id": first + row, "where": where, "reason": reason})


def _tell_of_empty(gathered: Gathered, say: Findings) -> None:
    rows: dict[str, int] = {}
    for piece, some in zip(gathered.pieces, gathered.scanned, strict=True):
        rows[piece.name] = rows.get(piece.name, 0) + some.kept
    if not any(rows.values()):
        raise UsageError(f"{gathered.pieces[0].name} has a header and no rows")
    for name, count in rows.items():
        if not count:
            say.note(f"{name} has a header and no rows")
