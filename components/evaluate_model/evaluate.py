"""From a run and a split to the evaluation directory: check, predict, measure, judge, write."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from components.evaluate_model import curves, gate, slices
from components.evaluate_model.evaluation import (
    Baseline,
    Evaluation,
    Fingerprints,
    Metrics,
    SliceFigures,
)
from components.evaluate_model.metrics import Measured, measure
from components.evaluate_model.options import EvaluateOptions
from components.evaluate_model.scored import Scored, scored
from components.output import replacing
from trainer.data.dataset import Dataset
from trainer.data.source import open_for_run
from trainer.errors import UsageError
from trainer.quiet import quiet_start
from trainer.run.choice import Which

if TYPE_CHECKING:
    import tensorflow as tf

    from components.evaluate_model.predict import Predicted

EVALUATION, PREDICTIONS, REPORT = "evaluation.json", "predictions.parquet", "report.html"

Progress = Callable[[str, int, int], None]


def _quiet(what: str, done: int, rows: int) -> None:
    """Reports nothing."""


def evaluate(options: EvaluateOptions, progress: Progress = _quiet) -> Evaluation:
    """Evaluates a run on one split and writes the evaluation directory, whole or not at all.

    Call it before any other TensorFlow op if `cpu_replicas` is more than 1.

    Args:
      options: what to evaluate and where to write.
      progress: called with (run, rows done, rows in all).

    Raises:
      UsageError: the options, the run and the data do not fit together; nothing is written.
    """
    rules = [gate.parse(written) for written in options.thresholds]
    dataset = open_for_run(options.run, options.data)
    if dataset.split(options.split).rows == 0:
        raise UsageError(f"split {options.split!r} of {options.data} has no rows")
    columns = list(dict.fromkeys([*options.slices, *(r.column for r in rules if r.column)]))
    slices.check_columns(dataset.manifest, columns)
    gate.check(rules, dataset.manifest.label.kind, has_baseline=options.baseline is not None)
    # TensorFlow from here on: what is wrong with the options has been said.
    with quiet_start():
        from components.evaluate_model.predict import make_strategy

    names = frozenset({EVALUATION, PREDICTIONS, REPORT})
    with replacing(options.output, marker=EVALUATION, names=names, kind="evaluation") as directory:
        work = _Work(options, dataset, make_strategy(options.cpu_replicas), progress)
        ours = work.measure(options.run, options.step)
        theirs = work.measure(options.baseline, None) if options.baseline else None
        parts = slices.figures(ours.rows, work.slicings(ours, columns))
        evaluation = work.evaluation(ours, theirs, parts, rules)
        _write(directory, evaluation, ours)
    return evaluation


@dataclass(frozen=True)
class _Measured:
    """One run on the split: what it said of each row, and the figures of the whole."""

    predicted: Predicted
    rows: Scored
    figures: Measured


@dataclass(frozen=True)
class _Work:
    """What stays the same for a run and its baseline."""

    options: EvaluateOptions
    dataset: Dataset
    strategy: tf.distribute.Strategy
    progress: Progress

    def measure(self, run: str, step: Which) -> _Measured:
        """Predicts the whole split with one run."""
        from components.evaluate_model.predict import predict_split

        predicted = predict_split(
            run, self.strategy, self.dataset, self.options.split,
            step=step, batch=self.options.batch,
            progress=lambda done, rows: self.progress(run, done, rows),
        )  # fmt: skip
        found = predicted.predictions
        rows = scored(self.dataset.manifest.label, found.label, found.weight, found.outputs)
        return _Measured(predicted, rows, measure(rows))

    def slicings(self, ours: _Measured, columns: Sequence[str]) -> list[slices.Slicing]:
        """Cuts the rows, in the predictions' order, by each column."""
        if not columns:
            return []
        from components.run_data import raw_columns

        # By ascending row id, as predictions are.
        _, values = raw_columns(self.dataset, self.options.split, columns)
        training = ours.predicted.trained.dataset.split_statistics("train").features
        return [
            slices.cut(self.dataset.manifest.feature(column), values[column], training.get(column))
            for column in columns
        ]

    def evaluation(
        self,
        ours: _Measured,
        theirs: _Measured | None,
        parts: tuple[SliceFigures, ...],
        rules: Sequence[gate.Rule],
    ) -> Evaluation:
        """Puts the file together."""
        label, trained, figures = self.dataset.manifest.label, ours.predicted.trained, ours.figures
        classes = None if label.classes is None else tuple(str(c) for c in label.classes)
        baseline = self._baseline(ours, theirs) if theirs else None
        bounds = baseline.metrics if baseline else None
        return Evaluation(
            run=self.options.run,
            step=trained.step,
            checkpoint=trained.why,
            data=self.options.data,
            split=self.options.split,
            rows=ours.rows.rows,
            label=label.name,
            kind=label.kind,
            classes=classes,
            created=datetime.datetime.now(datetime.UTC).isoformat(sep=" ", timespec="seconds"),
            replicas=self.strategy.num_replicas_in_sync,
            metrics=figures.values,
            reasons=figures.reasons,
            slices=parts,
            verdict=gate.judge(rules, figures.values, ours.rows.rows, parts, bounds),
            baseline=baseline,
            fingerprints=Fingerprints(
                dataset=self.dataset.manifest.fingerprint, checkpoint=trained.fingerprint
            ),
            **_details(ours.rows, classes),
        )

    def _baseline(self, ours: _Measured, theirs: _Measured) -> Baseline:
        differences: Metrics = {}
        for name, value in theirs.figures.values.items():
            own = ours.figures.values[name]
            differences[name] = None if own is None or value is None else own - value
        return Baseline(
            run=self.options.baseline or "",
            step=theirs.predicted.trained.step,
            fingerprint=theirs.predicted.trained.fingerprint,
            metrics=theirs.figures.values,
            differences=differences,
        )


def _details(rows: Scored, classes: tuple[str, ...] | None) -> dict[str, Any]:
    """The curves and tables of the label's kind."""
    if classes is None:
        return {"residual_quantiles": curves.residual_quantiles(rows)}
    return {
        "confusion": curves.confusion(rows, classes),
        "per_class": curves.class_figures(rows, classes) if rows.kind == "multiclass" else (),
        "roc": curves.roc(rows),
        "precision_recall": curves.precision_recall(rows),
        "calibration": curves.calibration(rows),
    }


def _write(directory: Path, evaluation: Evaluation, ours: _Measured) -> None:
    _write_predictions(directory / PREDICTIONS, evaluation, ours)
    from components.evaluate_model import report

    report.write(evaluation, ours.rows, directory / REPORT)
    text = evaluation.model_dump_json(indent=1)
    (directory / EVALUATION).write_text(text + "\n", encoding="utf-8")


def _write_predictions(path: Path, evaluation: Evaluation, ours: _Measured) -> None:
    """One row each, by ascending row id; what the class numbers mean stands in the metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = ours.predicted.predictions
    output = ours.rows.output.astype(np.float32)
    if evaluation.kind == "multiclass":
        lists = pa.FixedSizeListArray.from_arrays(output.ravel(), output.shape[1])
        scores = {"scores": lists.cast(pa.list_(pa.float32()))}
    else:
        scores = {"score": pa.array(output)}
    columns = {"row_id": found.row_id, "label": found.label, "weight": found.weight, **scores}
    facts = evaluation.model_dump_json(include={"label", "kind", "classes", "split", "step"})
    pq.write_table(pa.table(columns).replace_schema_metadata({"castell": facts}), path)
