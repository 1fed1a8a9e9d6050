"""Evaluates a Model artifact and fills the KFP artifacts that the console shows."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from components.evaluate_model.evaluation import Evaluation
from components.evaluate_model.options import EvaluateOptions
from components.steps import Artifact, local_input, local_output, location, one_line_ends


def run(
    dataset: Artifact, run: Artifact, *, split: str, slices: list[str], thresholds: list[str],
    evaluation: Artifact, metrics: Any, classification: Any, report: Artifact,
) -> bool:  # fmt: skip
    """Returns whether every threshold holds (also when there is none)."""
    from components.evaluate_model.command import ProgressLines, print_figures
    from components.evaluate_model.evaluate import evaluate

    with (
        one_line_ends(),
        local_input(run) as trained,
        local_output(evaluation) as output,
        local_output(report) as page,
    ):
        found = evaluate(
            EvaluateOptions(
                run=trained,
                data=location(dataset),
                split=split,
                output=output,
                slices=tuple(slices),
                thresholds=tuple(thresholds),
            ),
            ProgressLines(),
        )
        print_figures(found, output)
        shutil.copyfile(Path(output, "report.html"), page)
    describe(found, evaluation, metrics, classification)
    return found.verdict.passed


def describe(found: Evaluation, evaluation: Artifact, metrics: Any, classification: Any) -> None:
    """Puts the figures on the artifacts: `Metrics`, `ClassificationMetrics` and the directory."""
    figures = {name: value for name, value in found.metrics.items() if value is not None}
    for name, value in figures.items():
        metrics.log_metric(name, value)
    evaluation.metadata.update(
        {
            "split": found.split,
            "rows": found.rows,
            "step": found.step,
            "passed": found.verdict.passed,
            "dataset_fingerprint": found.fingerprints.dataset,
            "checkpoint_fingerprint": found.fingerprints.checkpoint,
            **figures,
        }
    )
    if found.roc:
        classification.log_roc_curve(
            list(found.roc.fpr), list(found.roc.tpr), list(found.roc.thresholds)
        )
    if found.confusion:
        classification.log_confusion_matrix(
            list(found.confusion.classes), [list(row) for row in found.confusion.matrix]
        )
