"""From a dataset to a verdict: open, scan, judge, write."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from components.output import replacing
from components.validate_data import cells, distributions, leakage, picture, whole
from components.validate_data.judge import Judge
from components.validate_data.options import ValidateOptions
from components.validate_data.reference import Reference, training_split
from components.validate_data.rules import KINDS, Rules
from components.validate_data.scan import SplitScan, scan
from components.validate_data.validation import Baseline, Finding, Validation, Verdict
from trainer import files
from trainer.data.dataset import Dataset
from trainer.errors import CastellError, UsageError

VALIDATION, REPORT = "validation.json", "validation.html"
_TRAIN = "the train split"
# Time goes on: that it does is no fault of the data.
_TIMES = ("date", "timestamp")
_BASELINES = {"dataset": "the baseline", "run": "the data the run was trained on"}

Report = Callable[[str], None]


class Blocked(CastellError):
    """The data must not be used: a rule of level `block` is broken."""

    exit_code = 2

    @classmethod
    def of(cls, validation: Validation) -> Blocked:
        """Returns the error that names the first finding and how many there are."""
        first, count = validation.findings[0], validation.verdict.blocked
        more = f" (and {count - 1} more)" if count > 1 else ""
        return cls(f"{validation.data} does not pass: {told(first)}{more}")


def told(finding: Finding) -> str:
    """Returns a finding in one line."""
    where = "".join(f", {part}" for part in (finding.column, finding.split) if part)
    return f"{finding.rule}{where}: {finding.message}"


@dataclass(frozen=True)
class Against:
    """A baseline, opened."""

    described: Baseline
    dataset: Dataset


def validate(options: ValidateOptions, report: Report = lambda line: None) -> Validation:
    """Judges a dataset and writes what was found, whole or not at all.

    Args:
      options: what to validate, against what, and where to write.
      report: takes lines of progress.

    Raises:
      UsageError: there is no such data, baseline or run, a rule is none, or a shard is damaged;
        nothing is written then.
    """
    rules = Rules(options.rules)
    dataset = Dataset.open(options.data)
    against = _against(options)
    known = [f.name for f in dataset.manifest.features]
    if against is not None:
        known += [f.name for f in against.dataset.manifest.features]
    rules.check_columns(known)
    dataset.check_sizes(*dataset.manifest.splits)
    for split in dataset.manifest.splits:
        dataset.check_statistics(split)
    names = frozenset({VALIDATION, REPORT})
    place = (
        nullcontext(None)
        if options.output is None
        else replacing(options.output, marker=VALIDATION, names=names, kind="validation")
    )
    with place as directory:
        work = _Work(options, rules, dataset, against)
        scans = work.scans(report)
        validation = work.validation(scans)
        if directory is not None:
            _write(directory, validation, work, scans)
    return validation


def _against(options: ValidateOptions) -> Against | None:
    kind: Literal["dataset", "run"]
    if options.run is not None:
        try:
            dataset = Dataset.open(files.join(options.run, "dataset"))
        except UsageError as error:
            raise UsageError(
                f"--run {options.run} holds no statistics of its training data ({error})"
            ) from None
        kind, path = "run", options.run
    elif options.baseline is not None:
        dataset = Dataset.open(options.baseline)
        kind, path = "dataset", options.baseline
    else:
        return None
    split = training_split(dataset)
    dataset.check_statistics(split)
    described = Baseline(
        kind=kind,
        path=path,
        split=split,
        rows=dataset.split_statistics(split).rows,
        fingerprint=dataset.manifest.fingerprint,
    )
    return Against(described, dataset)


class _Work:
    """References, scans and findings of one validation."""

    def __init__(
        self, options: ValidateOptions, rules: Rules, dataset: Dataset, against: Against | None
    ) -> None:
        self.options, self.rules, self.dataset, self.against = options, rules, dataset, against
        self.judge = Judge(rules)
        features = dataset.manifest.features
        self.train = training_split(dataset)
        self.own = Reference.of(_TRAIN, dataset, self.train, features)
        self.baseline: Reference | None = None
        if against is not None:
            described = against.described
            self.baseline = Reference.of(
                _BASELINES[described.kind], against.dataset, described.split, features
            )

    def scans(self, report: Report) -> dict[str, SplitScan]:
        """Reads every split once."""
        edges = picture.edges(self.baseline, self.own)
        found = {}
        for split, described in self.dataset.manifest.splits.items():
            is_train = split == self.train
            references = [self.baseline] if self.baseline else []
            if not is_train:
                references.append(self.own)
            found[split] = scan(self.dataset, split, references, edges, sampled=is_train)
            report(f"{split}: {described.rows:,} rows")
        return found

    def validation(self, scans: dict[str, SplitScan]) -> Validation:
        """Puts the file together."""
        found = [finding for finding in self._findings(scans) if finding is not None]
        order = {name: place for place, name in enumerate(KINDS)}
        found.sort(key=lambda f: (f.level != "block", order[f.rule]))
        blocked = sum(f.level == "block" for f in found)
        return Validation(
            data=self.options.data,
            fingerprint=self.dataset.manifest.fingerprint,
            label=self.dataset.manifest.label.name,
            created=datetime.datetime.now(datetime.UTC).isoformat(sep=" ", timespec="seconds"),
            splits={name: split.rows for name, split in self.dataset.manifest.splits.items()},
            baseline=self.against.described if self.against else None,
            verdict=Verdict(passed=not blocked, blocked=blocked, warned=len(found) - blocked),
            findings=tuple(found),
            rules=self.rules.described(),
            unmeasured=tuple(self._unmeasured()),
        )

    def _findings(self, scans: dict[str, SplitScan]) -> Iterator[Finding | None]:
        manifest, statistics = self.dataset.manifest, self.dataset.statistics
        train = statistics.splits[self.train]
        if self.against is not None and self.baseline is not None:
            yield from whole.schema(
                self.judge, manifest, self.against.dataset.manifest, self.baseline.name
            )
        for feature in manifest.features:
            yield whole.constant(self.judge, feature, train, self.train)
        yield from self._leaks(scans[self.train])
        for split, found in scans.items():
            yield from self._of_split(found, scans)
            if split != self.train:
                yield distributions.balance(
                    self.judge, manifest, split, statistics.splits[split], train, _TRAIN
                )

    def _of_split(self, split: SplitScan, scans: dict[str, SplitScan]) -> Iterator[Finding | None]:
        is_train = split.split == self.train
        reference = self.baseline or (None if is_train else self.own)
        label = self.dataset.manifest.label
        # Splits by time or by group differ by design; those drawn by chance do not.
        eased = self.baseline is None and not self._is_drawn
        for name, column in split.columns.items():
            judge = Judge(self.rules, eased=eased or column.feature.logical in _TIMES)
            yield from cells.findings(judge, split, column, reference)
            if self.baseline and (tally := column.against.get(self.baseline.name)):
                yield distributions.distance(
                    judge, "drift", split.split, column.feature, tally, self.baseline.name
                )
            if name == label.name and label.kind != "regression":
                continue  # `balance` looks at its classes
            if tally := column.against.get(_TRAIN):
                yield distributions.distance(
                    self.judge, "skew", split.split, column.feature, tally, _TRAIN
                )
        if not is_train:
            yield whole.duplicate(self.judge, split, scans[self.train])

    @property
    def _is_drawn(self) -> bool:
        """Whether the rows of every split were drawn by chance, one by one."""
        rule = self.dataset.manifest.split_rule
        return "fractions" in rule and "column" not in rule

    def _leaks(self, train: SplitScan) -> Iterator[Finding | None]:
        label = self.dataset.manifest.label
        columns = dict(train.sample)
        values = columns.pop(label.name, None)
        if values is None:
            return
        for name, score in leakage.suspicions(label.kind, values, columns).items():
            what = leakage.MEASURES[label.kind]
            yield self.judge.broken(
                "leakage", score, 0, name, split=self.train,
                message=f"it alone tells the label {label.name} ({what} {score:.4f}): is it known "
                "when predictions are made?",
            )  # fmt: skip

    def _unmeasured(self) -> Iterator[str]:
        if self.against is None:
            yield "drift and schema: there is no baseline (--baseline DATASET or --run RUN)"
        reference = self.baseline or self.own
        for name, expected in reference.columns.items():
            if expected.words and not expected.knows_all_words:
                yield f"new_category, {name}: {reference.name} has too many words to know them all"


def _write(
    directory: Path, validation: Validation, work: _Work, scans: dict[str, SplitScan]
) -> None:
    from components.validate_data import page

    columns = picture.columns(work.dataset, scans, work.baseline, validation.findings)
    (directory / REPORT).write_text(page.render(validation, columns), encoding="utf-8")
    text = validation.model_dump_json(indent=1)
    (directory / VALIDATION).write_text(text + "\n", encoding="utf-8")
