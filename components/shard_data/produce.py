"""From source files to shards: read → types → label → split → write. What all of it says is said.

Where the shards go, and what stands beside them, is up to the caller (`shard`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.shard_data import engine, figures, inputs
from components.shard_data.append import Base
from components.shard_data.arrange.placement import Place
from components.shard_data.engine import Engine, local
from components.shard_data.findings import Findings, flag
from components.shard_data.gather import Gathered, gather
from components.shard_data.inputs import SourceFile
from components.shard_data.options import ShardOptions
from components.shard_data.phases import write
from components.shard_data.progress import Progress, Report
from components.shard_data.settle import Settled, settle
from components.shard_data.work import Work
from trainer.data.blocks import plan_storage
from trainer.data.manifest import Label, Manifest, Split
from trainer.data.statistics import Statistics

# A piece is read at once. Larger ones gain nothing, smaller ones let memory be small.
_LARGEST_PIECE = 32 << 20
_SMALLEST_PIECE = 1 << 20
_PIECES_IN_MEMORY = 128
# What a process needs: the interpreter and its libraries, a piece as text and as stored.
_BYTES_A_PROCESS = 96 << 20
_BYTES_A_PIECE_BYTE = 16
# Fewer different values than this may be chance.
_MANY_IDS = 1000
# Less is done before a pool of processes has started.
_WORTH_PROCESSES = 64 << 20


@dataclass(frozen=True)
class Input:
    """One call: what it reads, what identifies that, and how."""

    files: list[SourceFile]
    source: dict[str, Any]
    options: ShardOptions
    report: Report

    @property
    def bytes(self) -> int:
        """Of all files, as they are packed."""
        return sum(entry["bytes"] for entry in self.source["files"])

    @property
    def piece_bytes(self) -> int:
        """What is read at once; it depends on no number of processes, and so do notes."""
        share = self.options.memory // _PIECES_IN_MEMORY
        return min(_LARGEST_PIECE, max(_SMALLEST_PIECE, share))

    @property
    def state(self) -> dict[str, Any]:
        """What a run must have in common with an earlier one to go on from it."""
        return {"source": self.source, "piece_bytes": self.piece_bytes}


def produce(
    given: Input, place: Work, root: Path, say: Findings, base: Base | None = None
) -> tuple[Manifest, Statistics, Gathered]:
    """Reads the input and writes its shards below `root`.

    Args:
      given: what to read and how.
      place: the work directory.
      root: where the shards go.
      say: takes the notes.
      base: the dataset that the shards are added to.

    Raises:
      UsageError: bad input.
    """
    options = given.options
    processes = _processes(options, given.bytes, given.piece_bytes)
    with engine.choose(options, processes, place) as pool:
        gathered = gather(
            given.files,
            options,
            place,
            pool,
            say,
            given.report,
            piece_bytes=given.piece_bytes,
            total_bytes=given.bytes,
            base=base,
        )
        settled = settle(gathered, pool, gathered.options, say, given.report, base)
        rows = sum(settled.placement.rows.values())
        given.report(
            f"{rows:,} rows, {len(settled.features)} columns, label {_told(settled.label)}"
        )
        prefix = "" if base is None else base.prefix
        manifest, statistics = _write(root, gathered, settled, pool, given.report, prefix)
    inputs.check_unchanged(given.files)
    manifest = manifest.model_copy(
        update={
            "split_rule": settled.rule,
            "source": given.source,
            "source_rows": gathered.rows,
            "dropped": tuple(say.dropped),
            "notes": tuple(say.all_notes()),
        }
    )
    return manifest, statistics, gathered


def _processes(options: ShardOptions, total: int, piece_bytes: int) -> int:
    # One more for the process that waits for the others.
    one = _BYTES_A_PROCESS + piece_bytes * _BYTES_A_PIECE_BYTE
    fitting = max(1, (options.memory - _BYTES_A_PROCESS) // one)
    if options.processes is not None:
        return min(options.processes, fitting)
    return min(local.cores(), fitting) if total > _WORTH_PROCESSES else 1


def _told(label: Label) -> str:
    if label.classes is None:
        return f"{label.name} (regression)"
    classes = ", ".join(map(str, label.classes[:5])) + (", …" if len(label.classes) > 5 else "")
    return f"{label.name} ({label.kind}: {classes})"


def _write(
    root: Path,
    gathered: Gathered,
    settled: Settled,
    pool: Engine,
    report: Report,
    prefix: str,
) -> tuple[Manifest, Statistics]:
    options = gathered.options
    features = settled.features
    if options.layout == "blocks":
        features = plan_storage(features)
    place = settled.placement
    content = write.Content(
        pieces=len(gathered.pieces),
        features=features,
        renumbered=settled.renumbered,
        ranges=settled.ranges,
        split_rows=place.rows,
        layout=options.layout,
        block_rows=options.block_rows,
        compression=options.compression,
        root=str(root),
        work=gathered.work,
    )
    jobs = [
        write.Job(one, _path(prefix, one, place.shards[one.split]), content)
        for one in place.places()
    ]
    written = _shards(pool, jobs, report)
    splits, statistics = {}, {}
    for name, rows in place.rows.items():
        parts = [next(written) for _ in range(place.shards[name])]
        splits[name] = Split(rows=rows, shards=tuple(part.shard for part in parts))
        states = [state for part in parts for state in part.states]
        statistics[name] = figures.merge(features, states)
        report(f"wrote {name}: {rows:,} rows in {len(parts)} shards")
    manifest = Manifest(
        layout=options.layout,
        block_rows=options.block_rows,
        compression=options.compression,
        features=features,
        label=settled.label,
        splits=splits,
        seed=options.seed,
        split_rule={},
        source={},
    )
    return manifest, Statistics(splits=statistics)


def _path(prefix: str, place: Place, count: int) -> str:
    return f"{place.split}/{prefix}{place.number:05d}-of-{count:05d}.tfrecord"


def _shards(pool: Engine, jobs: Sequence[write.Job], report: Report) -> Iterator[write.Written]:
    progress = Progress("wrote", len(jobs), report)
    for job, written in zip(jobs, pool.run(write.run, jobs), strict=True):
        progress.add(written.shard.bytes, job.place.rows, job.path)
        yield written


def note_oddities(
    manifest: Manifest, statistics: Statistics, say: Findings, *, named: bool
) -> None:
    """Says what the whole shows: constant columns, classes that training never sees.

    named: whether columns that only name rows are worth a word; of images each has its path.
    """
    _note_constants(manifest, statistics, say)
    if named:
        _note_ids(manifest, statistics, say)
    _note_absent_classes(manifest, statistics, say)


def _note_constants(manifest: Manifest, statistics: Statistics, say: Findings) -> None:
    for feature in manifest.features:
        parts = [split.features[feature.name] for split in statistics.splits.values()]
        if feature.shape or any(part.missing for part in parts):
            continue
        if feature.dictionary is not None:
            same = len(feature.dictionary) == 1
        else:
            limits = {limit for part in parts for limit in (part.min, part.max)}
            same = len(limits) == 1 and limits != {None}
        if same:
            say.note(f"column {feature.name} has the same value in every row")


def _note_ids(manifest: Manifest, statistics: Statistics, say: Findings) -> None:
    """A column that only tells rows apart teaches nothing that holds for others."""
    train = statistics.splits["train"]
    for feature in manifest.inputs:
        found = train.features[feature.name]
        is_name = not feature.shape and feature.logical is None and feature.dtype != "float32"
        if is_name and found.count >= _MANY_IDS and found.distinct == found.count == train.rows:
            say.note(
                f"column {feature.name} has another value in every row: if it only names rows, "
                f"leave it out with {flag('--drop', feature.name)}"
            )


def _note_absent_classes(manifest: Manifest, statistics: Statistics, say: Findings) -> None:
    label = manifest.label
    if label.classes is None:
        return
    there = statistics.splits["train"].features[label.name].distinct
    if there is not None and there < len(label.classes):
        say.note(
            f"the train split has rows of {there} of the {len(label.classes)} classes of label "
            f"{label.name}"
        )
