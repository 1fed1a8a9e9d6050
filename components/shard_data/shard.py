"""The step as a whole: read → types → label → split → write → describe."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt

from components.shard_data import (
    casts,
    directory,
    encode,
    labels,
    readers,
    schema,
    sources,
    split,
    statistics,
    typed,
    verify,
)
from components.shard_data.findings import Findings
from components.shard_data.options import ShardOptions
from components.shard_data.series import Series
from trainer.data.manifest import Feature, Label, Manifest, Shard, Split
from trainer.errors import UsageError

Report = Callable[[str], None]
Rows = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class Frame:
    """Typed columns [n] that the dataset will have, their label, and the rows' source numbers."""

    columns: dict[str, Series]
    label: Label
    row_id: Rows
    group: Series | None


def shard(options: ShardOptions, report: Report = lambda line: None) -> Manifest:
    """Makes the dataset directory `options.output` and returns its manifest.

    If it holds the dataset of the same source and options already, nothing is done.

    Args:
      options: what to read and how.
      report: takes lines of progress and notes.

    Raises:
      UsageError: bad input or options; then nothing is written.
    """
    say = Findings()
    options = schema.with_types(options)
    files = sources.find(options.sources)
    source = {"files": sources.fingerprint(files), "options": options.identity()}
    there = directory.existing(options.output, source)
    if there is not None:
        report(f"{options.output} is up to date: the same source and options made it")
        return there.manifest
    table = readers.read(files, options, say, report)
    frame = _settle(table, options, say)
    report(f"{len(frame.row_id):,} rows, {len(frame.columns)} columns, label {_told(frame.label)}")
    splits, rule = split.assign(frame.row_id, frame.group, options, say)
    _note_absent_classes(frame, splits, say)
    with directory.appearing(options.output) as root:
        manifest = _write(root, frame, splits, options, report)
        manifest = manifest.model_copy(
            update={
                "split_rule": rule,
                "source": source,
                "dropped": tuple(say.dropped),
                "notes": tuple(say.notes),
            }
        )
        (root / "manifest.json").write_text(manifest.model_dump_json(indent=2) + "\n", "utf-8")
        if options.verify:
            verify.verify(root, manifest)
            report("verified: every record reads back as written")
    for line in say.told():
        report(line)
    return manifest


def _settle(table: readers.Table, options: ShardOptions, say: Findings) -> Frame:
    """Decides all types, then leaves out rows without label and settles the label."""
    columns = {}
    for name in table.columns:
        series = _series(table, name, options, say)
        if series is not None:
            columns[name] = series
    label = labels.missing_rows(columns.get(options.label), options, len(table.row_id), say)
    kept = np.flatnonzero(~label.missing)
    if len(kept) < len(table.row_id):
        columns = {name: series.take(kept).compact() for name, series in columns.items()}
    columns[options.label], description = labels.settle(columns[options.label], options, say)
    group = _group(columns, options)
    for name in options.drop:
        columns.pop(name, None)
    if len(columns) < 2:
        raise UsageError(f"there is no column beside the label {options.label}")
    _note_constants(columns, say)
    return Frame(columns, description, table.row_id[kept], group)


def _series(table: readers.Table, name: str, options: ShardOptions, say: Findings) -> Series | None:
    column = table.columns[name]
    if name in options.drop:  # Only here to split by: its texts are enough.
        options = options.model_copy(update={"types": {**options.types, name: "string"}})
    if table.typed and name not in table.as_written:
        return typed.convert(name, column, options, table.where, say)
    texts = casts.Texts.of(name, column, table.where)
    if name in table.as_written and name not in options.types:
        return casts.as_text(texts)
    return casts.decide(texts, options, say)


def _group(columns: Mapping[str, Series], options: ShardOptions) -> Series | None:
    if options.split_by is None:
        return None
    if options.split_by not in columns:
        raise UsageError(f"--split-by {options.split_by}: the column has no value in any row")
    group = columns[options.split_by]
    if group.shape:
        raise UsageError(f"--split-by {options.split_by}: the column holds lists")
    return group


def _told(label: Label) -> str:
    if label.classes is None:
        return f"{label.name} (regression)"
    classes = ", ".join(map(str, label.classes[:5])) + (", …" if len(label.classes) > 5 else "")
    return f"{label.name} ({label.kind}: {classes})"


def _note_constants(columns: Mapping[str, Series], say: Findings) -> None:
    for name, series in columns.items():
        values = series.column.values
        if not series.shape and len(values) and (values == values[0]).all():
            say.note(f"column {name} has the same value in every row")


def _note_absent_classes(frame: Frame, splits: Mapping[str, Rows], say: Findings) -> None:
    if frame.label.classes is None:
        return
    values = frame.columns[frame.label.name].column.values
    there = len(np.unique(values[splits["train"]]))
    if there < len(frame.label.classes):
        say.note(
            f"the train split has rows of {there} of the {len(frame.label.classes)} classes of "
            f"label {frame.label.name}"
        )


def _write(
    root: Path, frame: Frame, splits: Mapping[str, Rows], options: ShardOptions, report: Report
) -> Manifest:
    features = encode.features_of(frame.columns, frame.label.name, options.layout)
    counts = split.shard_counts(dict(splits), options.shards)
    written = {}
    for name, rows in splits.items():
        shards = _write_split(
            root / name, rows, counts[name], frame, features=features, options=options
        )
        written[name] = Split(rows=len(rows), shards=shards)
        report(f"wrote {name}: {len(rows):,} rows in {len(shards)} shards")
    figures = statistics.describe(frame.columns, splits)
    (root / "statistics.json").write_text(figures.model_dump_json(indent=1) + "\n", "utf-8")
    (root / "schema.pbtxt").write_text(schema.to_text(features, frame.label), "utf-8")
    return Manifest(
        layout=options.layout,
        block_rows=options.block_rows,
        features=features,
        label=frame.label,
        splits=written,
        seed=options.seed,
        split_rule={},
        source={},
    )


def _write_split(
    folder: Path,
    rows: Rows,
    count: int,
    frame: Frame,
    *,
    features: tuple[Feature, ...],
    options: ShardOptions,
) -> tuple[Shard, ...]:
    folder.mkdir()

    def write(number: int, start: int, end: int) -> Shard:
        chosen = rows[start:end]
        columns = {key: series.take(chosen) for key, series in frame.columns.items()}
        payloads = encode.records(
            features, columns, frame.row_id[chosen], options.layout, options.block_rows
        )
        path = f"{folder.name}/{number:05d}-of-{count:05d}.tfrecord"
        return encode.write_shard(folder.parent, path, end - start, payloads)

    cuts = split.ranges(len(rows), count)
    with ThreadPoolExecutor(options.processes) as pool:
        return tuple(pool.map(lambda job: write(job[0], *job[1]), enumerate(cuts)))
