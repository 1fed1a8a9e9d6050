"""The step as a whole: read → types → label → split → write → describe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from components.shard_data import directory, engine, figures, inputs, schema, verify
from components.shard_data.engine import Engine, local
from components.shard_data.findings import Findings
from components.shard_data.gather import Gathered, gather, rejected_lines
from components.shard_data.inputs import SourceFile
from components.shard_data.options import ShardOptions
from components.shard_data.phases import write
from components.shard_data.progress import Progress, Report
from components.shard_data.settle import Settled, settle
from trainer.data.blocks import plan_storage
from trainer.data.manifest import Label, Manifest, Split
from trainer.data.statistics import Statistics

# A piece is read at once. Larger ones gain nothing, smaller ones let memory be small.
_LARGEST_PIECE = 32 << 20
_SMALLEST_PIECE = 1 << 20
_PIECES_IN_MEMORY = 128
# What a process needs for a piece, its columns as text and as stored, and for a shard.
_BYTES_A_PIECE_BYTE = 16
# Less is done before a pool of processes has started.
_WORTH_PROCESSES = 64 << 20


def shard(options: ShardOptions, report: Report = lambda line: None) -> Manifest:
    """Makes the dataset directory `options.output` and returns its manifest.

    If it holds the dataset of the same source and options already, nothing is done.

    Args:
      options: what to read and how.
      report: takes lines of progress and notes.

    Raises:
      UsageError: bad input or options; then nothing is written.
    """
    options = schema.with_types(options)
    files = inputs.find(options.sources)
    identities = _identities(files, options)
    if options.order == "content":
        files, identities = _by_content(files, identities)
    source = {"files": identities, "options": options.identity()}
    there = directory.existing(options.output, source)
    if there is not None:
        report(f"{options.output} is up to date: the same source and options made it")
        return there.manifest
    total = sum(entry["bytes"] for entry in identities)
    piece_bytes = min(_LARGEST_PIECE, max(_SMALLEST_PIECE, options.memory // _PIECES_IN_MEMORY))
    state = {"source": source, "piece_bytes": piece_bytes}
    say = Findings()
    with (
        directory.appearing(options.output, state, report) as (place, root),
        engine.choose(options, _processes(options, total, piece_bytes), place) as pool,
    ):
        gathered = gather(
            files, options, place, pool, say, report, piece_bytes=piece_bytes, total_bytes=total
        )
        settled = settle(gathered, pool, options, say)
        rows = sum(settled.placement.rows.values())
        report(f"{rows:,} rows, {len(settled.features)} columns, label {_told(settled.label)}")
        manifest, statistics = _write(root, gathered, settled, options, pool, report)
        _note_constants(manifest, statistics, say)
        _note_absent_classes(manifest, statistics, say)
        inputs.check_unchanged(files)
        manifest = manifest.model_copy(
            update={
                "split_rule": settled.rule,
                "source": source,
                "dropped": tuple(say.dropped),
                "notes": tuple(say.all_notes()),
            }
        )
        _describe(root, manifest, statistics, gathered)
        if options.verify:
            verify.verify(root, manifest)
            report("verified: every record reads back as written")
    for line in say.told():
        report(line)
    return manifest


def _identities(files: Sequence[SourceFile], options: ShardOptions) -> list[dict[str, Any]]:
    with ThreadPoolExecutor(local.cores()) as threads:
        return list(threads.map(partial(inputs.fingerprint, labels=options.labels), files))


def _by_content(
    files: list[SourceFile], identities: list[dict[str, Any]]
) -> tuple[list[SourceFile], list[dict[str, Any]]]:
    """Orders files by their hashes: however they are called and listed, rows get their numbers."""
    order = sorted(range(len(files)), key=lambda i: (identities[i]["sha256"], files[i].path))
    return [files[i] for i in order], [identities[i] for i in order]


def _processes(options: ShardOptions, total: int, piece_bytes: int) -> int:
    fitting = max(1, options.memory // (piece_bytes * _BYTES_A_PIECE_BYTE))
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
    options: ShardOptions,
    pool: Engine,
    report: Report,
) -> tuple[Manifest, Statistics]:
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
        write.Job(one, _path(one.split, one.number, place.shards[one.split]), content)
        for one in place.places()
    ]
    written = iter(_written(pool, jobs, report))
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


def _path(split: str, number: int, count: int) -> str:
    return f"{split}/{number:05d}-of-{count:05d}.tfrecord"


def _written(pool: Engine, jobs: Sequence[write.Job], report: Report) -> Iterator[write.Written]:
    progress = Progress("wrote", len(jobs), report)
    for job, written in zip(jobs, pool.run(write.run, jobs), strict=True):
        progress.add(written.shard.bytes, job.place.rows, job.path)
        yield written


def _describe(root: Path, manifest: Manifest, statistics: Statistics, gathered: Gathered) -> None:
    """Writes what stands beside the shards, the manifest last."""
    text = schema.to_text(manifest.features, manifest.label)
    (root / "schema.pbtxt").write_text(text, "utf-8")
    (root / "statistics.json").write_text(statistics.model_dump_json(indent=1) + "\n", "utf-8")
    rejected = list(rejected_lines(gathered))
    if rejected:
        (root / "rejected.jsonl").write_text("\n".join(rejected) + "\n", "utf-8")
    (root / "manifest.json").write_text(manifest.model_dump_json(indent=2) + "\n", "utf-8")


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
