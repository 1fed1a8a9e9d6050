"""The step as a whole: one call, a dataset that appears whole, or grows by whole files."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from components.shard_data import directory, inputs, schema, verify
from components.shard_data.append import Base
from components.shard_data.engine import local
from components.shard_data.findings import Findings
from components.shard_data.gather import rejected_lines
from components.shard_data.inputs import SourceFile
from components.shard_data.options import ShardOptions
from components.shard_data.produce import Input, note_oddities, produce
from components.shard_data.progress import Report
from components.shard_data.work import write_text
from trainer.data.manifest import Manifest
from trainer.data.statistics import Statistics


def shard(options: ShardOptions, report: Report = lambda line: None) -> Manifest:
    """Makes the dataset directory `options.output` and returns its manifest.

    If it holds the dataset of the same source and options already, nothing is done. With `append`
    it holds a dataset, and the files that this does not have yet are added.

    Args:
      options: what to read and how.
      report: takes lines of progress and notes.

    Raises:
      UsageError: bad input or options; then nothing is written.
    """
    options = schema.with_types(options)
    files = inputs.find(options.sources)
    if options.append:
        with directory.alone(options.output) as partial:
            return _appended(partial, files, options, report)
    files, source = _source(files, options, report)
    there = directory.existing(options.output, source)
    if there is not None:
        report(f"{options.output} is up to date: the same source and options made it")
        return there.manifest
    with directory.alone(options.output) as partial:
        return _made(partial, Input(files, source, options, report))


def _source(
    files: list[SourceFile], options: ShardOptions, report: Report, base: Base | None = None
) -> tuple[list[SourceFile], dict[str, Any]]:
    """Returns the files that are to be read, in order, and what identifies them."""
    identities = _identities(files, options)
    if base is not None:
        files, identities = base.new(files, identities)
    if options.order == "content":
        files, identities = _by_content(files, identities)
    _tell_of_twins(identities, report)
    return files, {"files": identities, "options": options.identity()}


def _made(partial: Path, given: Input) -> Manifest:
    say = Findings()
    with directory.working(partial, given.state, given.report) as (place, root):
        manifest, statistics, gathered = produce(given, place, root, say)
        note_oddities(manifest, statistics, say, named=gathered.pieces[0].format != "images")
        manifest = manifest.model_copy(update={"notes": tuple(say.all_notes())})
        _describe(root, manifest, statistics, list(rejected_lines(gathered)))
        _verify(root, manifest, given)
        directory.appear(root, given.options.output)
    for line in say.told():
        given.report(line)
    return manifest


def _appended(
    partial: Path, files: list[SourceFile], options: ShardOptions, report: Report
) -> Manifest:
    """Makes a dataset beside the old one that has its shards, too, and puts it in its place."""
    base = Base.open(options)
    options = base.options(options)
    files, source = _source(files, options, report, base)
    if not files:
        report(f"{options.output} is up to date: it has all of these files")
        return base.manifest
    given = Input(files, source, options, report)
    say = Findings()
    with directory.working(partial, given.state, report) as (place, root):
        manifest, statistics, gathered = produce(given, place, root, say, base)
        joined = base.joined(manifest, gathered.rows)
        earlier = base.link(root)
        figures = base.figures(root, joined, statistics)
        _describe(root, joined, figures, [*earlier, *rejected_lines(gathered)])
        _verify(root, joined, given)
        directory.appear(root, options.output, over=True)
    for line in say.told():
        report(line)
    return joined


def _verify(root: Path, manifest: Manifest, given: Input) -> None:
    if given.options.verify:
        verify.verify(root, manifest, given.report)
        given.report("verified: every record reads back as written")


def _identities(files: Sequence[SourceFile], options: ShardOptions) -> list[dict[str, Any]]:
    with ThreadPoolExecutor(local.cores()) as threads:
        return list(threads.map(partial(inputs.fingerprint, labels=options.labels), files))


def _tell_of_twins(identities: Sequence[dict[str, Any]], report: Report) -> None:
    """The same bytes under two names are most likely one file too many."""
    first: dict[str, str] = {}
    for entry in identities:
        name = first.setdefault(entry["sha256"], entry["path"])
        if name != entry["path"]:
            report(f"{name} and {entry['path']} are the same, byte for byte: both are read")


def _by_content(
    files: list[SourceFile], identities: list[dict[str, Any]]
) -> tuple[list[SourceFile], list[dict[str, Any]]]:
    """Orders files by their hashes: however they are called and listed, rows get their numbers."""
    order = sorted(range(len(files)), key=lambda i: (identities[i]["sha256"], files[i].path))
    return [files[i] for i in order], [identities[i] for i in order]


def _describe(
    root: Path, manifest: Manifest, statistics: Statistics, rejected: Sequence[str]
) -> None:
    """Writes what stands beside the shards, the manifest last."""
    write_text(root / "schema.pbtxt", schema.to_text(manifest.features, manifest.label))
    write_text(root / "statistics.json", statistics.model_dump_json(indent=1) + "\n")
    if rejected:
        write_text(root / "rejected.jsonl", "\n".join(rejected) + "\n")
    write_text(root / "manifest.json", manifest.model_dump_json(indent=2) + "\n")
