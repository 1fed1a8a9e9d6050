"""TFRecords that castell did not make: tf.train.Examples and the schema.pbtxt that describes them.

They are looked through once: how many rows a file has, what hash, what figures its columns have.
From then on they are a data set of layout `rows` like any other, described in memory. A directory
with folders called train, eval and test has those splits; files that a glob names are all `train`.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, BinaryIO, cast

import numpy as np

from trainer import files
from trainer.data.blocks import plan_storage
from trainer.data.dataset import Dataset
from trainer.data.foreign_label import describe_label
from trainer.data.manifest import Feature, Label, Manifest, Shard, Split
from trainer.data.records import DamagedRecord, read_records
from trainer.data.rowlayout import ROWS_AT_ONCE, Rows
from trainer.data.statistics import SplitStatistics, Statistics
from trainer.data.tally import NotFinite, Tally
from trainer.errors import UsageError

SPLITS = ("train", "eval", "test")
_BLOCK_ROWS = 1024
_GZIP = b"\x1f\x8b"
_PROGRESS_SECONDS = 10.0

Say = Callable[[str], None]


def base_of(data: str) -> str:
    """Returns the directory below which all files of `data` (a directory, a file, a glob) are."""
    parts = data.split("/")
    whole = len(parts) - _is_file(data)
    magic = next((n for n, part in enumerate(parts) if any(c in part for c in "*?[")), whole)
    return "/".join(parts[:magic]) or ("/" if data.startswith("/") else ".")


def _is_file(data: str) -> bool:
    """Whether `data` names one file; what cannot be looked at is told by who reads it."""
    parent, slash, name = data.rpartition("/")
    if not name or any(c in data for c in "*?["):
        return False
    try:
        return bool(files.matching((parent or slash) or ".", name))
    except files.read_errors(ValueError, ImportError):
        return False


def open_records(
    data: str,
    features: Sequence[Feature],
    label: str | Label,
    *,
    kept: Dataset | None = None,
    say: Say,
) -> Dataset:
    """Returns the data set that the files of `data` are.

    Args:
      data: a directory, a file or a glob, local or a URL.
      features: their columns.
      label: its column; or all about it, if a run has settled that.
      kept: the same data as it was described before: if files, sizes and columns are equal, it is
        not looked through again.
      say: takes a line for people.

    Raises:
      UsageError: there are no such files, or they are not what the schema says.
    """
    base, found = base_of(data), _find(data)
    name = label if isinstance(label, str) else label.name
    if name not in [f.name for f in features]:
        known = ", ".join(f.name for f in features)
        raise UsageError(f"label ({name}): the schema has no such feature (it has {known})")
    source = {
        "tfrecords": found,
        "columns": [
            f.model_dump(mode="json", include={"name", "dtype", "shape"}) for f in features
        ],
        "label": name,
    }
    if kept is not None and kept.manifest.source == source:
        manifest = kept.manifest.model_copy(update={"weight_column": None})
        return replace(kept, path=base, manifest=manifest)
    scan = _Scan(base, features, say)
    splits = {split: scan.split(split, paths) for split, paths in found.items()}
    tallies = scan.tallies
    described, dictionary = describe_label(
        label, scan.feature(name), {split: tallies[split][name] for split in splits}, base
    )
    columns = [
        f.model_copy(
            update={
                "nullable": f.nullable or any(tallies[s][f.name].missing for s in splits),
                "dictionary": dictionary if f.name == name else None,
            }
        )
        for f in features
    ]
    manifest = Manifest(
        layout="rows", block_rows=_BLOCK_ROWS, features=plan_storage(columns), label=described,
        splits=splits, seed=0, split_rule={"folders": list(splits)}, source=source,
    )  # fmt: skip
    statistics = Statistics(
        splits={
            split: SplitStatistics(
                rows=splits[split].rows, features={n: t.figures() for n, t in columns_of.items()}
            )
            for split, columns_of in tallies.items()
        }
    )
    return Dataset(base, manifest, statistics)


def _find(data: str) -> dict[str, dict[str, int]]:
    """Returns the files of each split, by path from the base on, with their sizes."""
    base = base_of(data)
    try:
        if base != data.rstrip("/") or base == ".":
            pattern = data if base == "." else data[len(base.rstrip("/")) + 1 :]
            found = {"train": files.matching(base, pattern)}
        else:
            found = {name: files.matching(data, f"{name}/*tfrec*") for name in SPLITS}
            if not any(found.values()):
                found = {"train": files.matching(data, "*tfrec*")}
    except (ValueError, ImportError) as error:
        raise UsageError(f"{data} cannot be read: {error}") from None
    except files.read_errors() as error:
        raise UsageError(f"{data} cannot be read: {files.reason(error)}") from None
    if not found["train"]:
        raise UsageError(
            f"no file matches {data}: name TFRecord files by a glob, or a directory that has them "
            f"(or folders of them called {', '.join(SPLITS)})"
        )
    return {split: paths for split, paths in found.items() if paths}


class _Scan:
    """One pass over all files."""

    def __init__(self, base: str, features: Sequence[Feature], say: Say) -> None:
        self._base = base
        self._features = features
        self._say = say
        self._rows = 0
        self._files = 0
        self._told = time.monotonic()
        self._left_out: set[str] = set()
        self.tallies: dict[str, dict[str, Tally]] = {}

    def feature(self, name: str) -> Feature:
        """Returns the column called `name`."""
        return next(f for f in self._features if f.name == name)

    def split(self, name: str, paths: Mapping[str, int]) -> Split:
        """Looks through the files of one split."""
        self.tallies[name] = {f.name: Tally(f.dtype) for f in self._features}
        shards = tuple(self._shard(name, path, size) for path, size in paths.items())
        rows = sum(shard.rows for shard in shards)
        if rows == 0:
            raise UsageError(f"{self._base}: the files of split {name!r} have no records")
        for column, tally in self.tallies[name].items():
            if tally.count == 0:
                raise UsageError(
                    f"feature {column!r} of the schema is in no record of split {name!r} of "
                    f"{self._base}: remove it from the schema"
                )
        return Split(rows=rows, shards=shards)

    def _shard(self, split: str, path: str, size: int) -> Shard:
        full = files.join(self._base, path)
        rows = 0
        try:
            with files.open_binary(full) as opened:
                file = _Hashed(opened)
                records = read_records(cast(BinaryIO, file))
                while payloads := list(islice(records, ROWS_AT_ONCE)):
                    self._count(split, Rows(payloads, self._features, rows))
                    rows += len(payloads)
                    self._progress(full, len(payloads))
        except DamagedRecord as error:
            why = "it is compressed by gzip: unpack it (gunzip)" if file.begin == _GZIP else error
            raise UsageError(f"{full} is damaged or does not fit the schema: {why}") from None
        except files.read_errors() as error:
            raise UsageError(f"{full} cannot be read: {files.reason(error)}") from None
        self._files += 1
        return Shard(path=path, rows=rows, records=rows, bytes=size, sha256=file.hash.hexdigest())

    def _count(self, split: str, rows: Rows) -> None:
        for feature in self._features:
            try:
                self._count_column(self.tallies[split][feature.name], feature, rows)
            except NotFinite:
                raise DamagedRecord(f"{feature.name!r} has infinite values") from None
        if new := rows.others - self._left_out:
            self._left_out |= new
            names = ", ".join(sorted(new))
            self._say(f"{self._base}: left out, since the schema does not have it: {names}")

    def _count_column(self, tally: Tally, feature: Feature, rows: Rows) -> None:
        if None in feature.shape:
            column = rows.column(feature)
            assert column.splits is not None, "a column of lists"
            there = int(np.count_nonzero(np.diff(column.splits)))
            tally.add(column.values, there, len(column.splits) - 1 - there)
            return
        found = rows.fixed[feature.name]
        values, there = found.values[found.there].ravel(), int(found.there.sum())
        if feature.dtype == "float32" and np.isnan(values).any():
            values = values[~np.isnan(values)]
            there = len(values) if not feature.shape else there
        tally.add(values, there, len(found.there) - there)

    def _progress(self, path: str, rows: int) -> None:
        self._rows += rows
        if time.monotonic() - self._told > _PROGRESS_SECONDS:
            self._told = time.monotonic()
            self._say(f"looking through the records: {self._rows:,} rows so far, now {path}")


class _Hashed:
    """A file that is hashed while it is read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.hash: Any = hashlib.sha256()
        self.begin = b""

    def read(self, size: int) -> bytes:
        data = self._file.read(size)
        self.begin = self.begin or data[: len(_GZIP)]
        self.hash.update(data)
        return data
