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
    base = Base.open(options) if options.append else None
    if base is not None:
        options = base.options(options)
    identities = _identities(files, options)
    if base is not None:
        files, identities = base.new(files, identities)
    if options.order == "content":
        files, identities = _by_content(files, identities)
    source = {"files": identities, "options": options.identity()}
    if base is not None:
        if not files:
            report(f"{options.output} is up to date: it has all of these files")
            return base.manifest
        return _appended(base, Input(files, source, options, report))
    there = directory.existing(options.output, source)
    if there is not None:
        report(f"{options.output} is up to date: the same source and options made it")
        return there.manifest
    return _made(Input(files, source, options, report))


def _made(given: Input) -> Manifest:
    say = Findings()
    with directory.appearing(given.options.output, given.state, given.report) as (place, root):
        manifest, statistics, gathered = produce(given, place, root, say)
        note_oddities(manifest, statistics, say)
        manifest = manifest.model_copy(update={"notes": tuple(say.all_notes())})
        _describe(root, manifest, statistics, list(rejected_lines(gathered)))
        if given.options.verify:
            verify.verify(root, manifest)
            given.report("verified: every record reads back as written")
    for line in say.told():
        given.report(line)
    return manifest


def _appended(base: Base, given: Input) -> Manifest:
    say = Findings()
    output = Path(given.options.output)
    with directory.working(given.options.output, given.state, given.report) as (place, root):
        base.remove_orphans(output)
        manifest, _, gathered = produce(given, place, root, say, base)
        joined = base.joined(manifest, gathered.rows)
        directory.settle_down(root)
        for split in manifest.splits.values():
            for shard in split.shards:
                (output / shard.path).parent.mkdir(exist_ok=True)
                (root / shard.path).rename(output / shard.path)
        statistics = base.figures(output, joined)
        rejected = output / "rejected.jsonl"
        earlier = rejected.read_text("utf-8").splitlines() if rejected.exists() else []
        _describe(output, joined, statistics, [*earlier, *rejected_lines(gathered)])
        if given.options.verify:
            verify.verify(output, joined)
            given.report("verified: every record reads back as written")
    for line in say.told():
        given.report(line)
    return joined


def _identities(files: Sequence[SourceFile], options: ShardOptions) -> list[dict[str, Any]]:
    with ThreadPoolExecutor(local.cores()) as threads:
        return list(threads.map(partial(inputs.fingerprint, labels=options.labels), files))


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
