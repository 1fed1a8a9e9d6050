"""`report.html`: one self-contained page for people who did not train the model.

The page's text and tables stand in report.html.jinja, its pictures come from `plots`; here they
meet. Nothing is loaded from elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from components.evaluate_model import plots
from components.evaluate_model.evaluation import Evaluation, SliceFigures
from components.evaluate_model.metrics import LOWER_IS_BETTER, NO_DIRECTION
from components.evaluate_model.scored import Scored
from components.evaluate_model.slices import text
from trainer import files

MAIN_METRIC = {"binary": "auc", "multiclass": "accuracy", "regression": "rmse"}
_MEANING = {
    "log_loss": "mean surprise at what happened; lower is better",
    "auc": "chance that a positive row scores above a negative one",
    "pr_auc": "average precision over all thresholds",
    "accuracy": "share of rows that are right",
    "precision": "share of predicted positives that are positive",
    "recall": "share of positives that are found",
    "f1": "harmonic mean of precision and recall",
    "brier": "mean squared error of the probability; lower is better",
    "calibration_error": "mean gap between score and share that came true; lower is better",
    "base_rate": "share of positive rows",
    "rmse": "root of the mean squared error; lower is better",
    "mae": "mean absolute error; lower is better",
    "r2": "share of the label's variance that is explained",
    "bias": "mean of predicted minus actual",
}
_MACRO = {
    "auc": "one class against the rest, mean over classes",
    "precision": "mean over classes",
    "recall": "mean over classes",
    "f1": "mean over classes",
    "calibration_error": "of the chosen class; lower is better",
}


def render(evaluation: Evaluation, rows: Scored) -> str:
    """Returns the page. `rows`: the scored rows behind `evaluation`, for its pictures."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("components.evaluate_model", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["figure"] = figure
    environment.filters["signed"] = lambda value: figure(value, signed=True)
    environment.filters["slice_text"] = text
    columns = _by_column(evaluation.slices)
    page: str = environment.get_template("report.html.jinja").render(
        e=evaluation,
        main=MAIN_METRIC[evaluation.kind],
        meaning=_MEANING | (_MACRO if evaluation.kind == "multiclass" else {}),
        better=_better(evaluation),
        shades=_shades(evaluation),
        pictures=_pictures(evaluation, rows.weighted()),
        slices=[
            (column, parts, _slice_picture(evaluation, column, parts))
            for column, parts in columns.items()
        ],
        training=_training_picture(evaluation.run),
    )
    return page


def figure(value: float | None, *, signed: bool = False) -> str:
    """Returns a number as the report shows it: four digits that matter, "n/a" for none."""
    if value is None:
        return "n/a"
    size = abs(value)
    if size >= 1e6 or 0 < size < 1e-4:
        shown = f"{value:{'+' if signed else ''}.3e}"
    elif size >= 1000:
        shown = f"{value:{'+' if signed else ''},.0f}"
    elif size >= 10:
        shown = f"{value:{'+' if signed else ''}.2f}"
    else:
        shown = f"{value:{'+' if signed else ''}.4f}"
    return shown.replace("-", "\N{MINUS SIGN}")


def _by_column(parts: Sequence[SliceFigures]) -> dict[str, list[SliceFigures]]:
    columns: dict[str, list[SliceFigures]] = {}
    for part in parts:
        columns.setdefault(next(iter(part.slice)), []).append(part)
    return columns


def _better(evaluation: Evaluation) -> dict[str, str]:
    """Whether each difference to the baseline is good news: "better", "worse" or ""."""
    found = {}
    for name, change in (evaluation.baseline.differences if evaluation.baseline else {}).items():
        if change is None or name in NO_DIRECTION or abs(change) < 5e-5:
            found[name] = ""
        else:
            found[name] = "better" if (change < 0) == (name in LOWER_IS_BETTER) else "worse"
    return found


def _shades(evaluation: Evaluation) -> list[list[int]]:
    """Each confusion cell's share of its row, in percent."""
    if evaluation.confusion is None:
        return []
    return [
        [round(100 * cell / sum(row)) if sum(row) else 0 for cell in row]
        for row in evaluation.confusion.matrix
    ]


def _pictures(evaluation: Evaluation, rows: Scored) -> list[tuple[str, str]]:
    """Titles and pictures of the label's kind."""
    found: list[tuple[str, str]] = []
    metrics = evaluation.metrics
    if evaluation.kind == "regression":
        if rows.rows:
            found.append(("Predicted and actual", plots.predicted_and_actual(rows)))
            found.append(("Residuals", plots.residuals(rows)))
        return found
    if evaluation.roc is not None:
        found.append((f"ROC: area {figure(metrics['auc'])}", plots.roc(evaluation.roc)))
    if evaluation.precision_recall is not None:
        curve = plots.precision_recall(evaluation.precision_recall, metrics["base_rate"] or 0)
        title = f"Precision and recall: average precision {figure(metrics['pr_auc'])}"
        found.append((title, curve))
    if evaluation.calibration:
        found.append(("Calibration", plots.calibration(evaluation.calibration)))
    if evaluation.kind == "binary" and evaluation.classes and rows.rows:
        histogram = plots.score_histogram(rows, evaluation.classes)
        found.append((f"Scores by {evaluation.label}", histogram))
    return found


def _slice_picture(evaluation: Evaluation, column: str, parts: list[SliceFigures]) -> str:
    metric = MAIN_METRIC[evaluation.kind]
    if all(part.metrics[metric] is None for part in parts):
        return ""
    return plots.slice_dots(
        column,
        parts,
        metric,
        evaluation.metrics[metric],
        lower_is_better=metric in LOWER_IS_BETTER,
    )


def _training_picture(run: str) -> str:
    """The loss by step and split of `<run>/metrics.jsonl`, or nothing."""
    try:
        lines = files.read_text(files.join(run, "metrics.jsonl"), errors="replace").splitlines()
    except FileNotFoundError:
        return ""
    curves: dict[str, tuple[list[int], list[float]]] = {}
    for line in lines:
        entry = _entry(line)
        loss = entry.get("loss")
        if isinstance(loss, int | float):
            steps, losses = curves.setdefault(str(entry.get("split", "train")), ([], []))
            steps.append(entry["step"])
            losses.append(float(loss))
    return plots.training(curves) if any(len(s) > 1 for s, _ in curves.values()) else ""


def _entry(line: str) -> dict[str, Any]:
    """One line of metrics; nothing of one that is damaged, or half written yet."""
    try:
        entry = json.loads(line)
    except json.JSONDecodeError:
        return {}
    return entry if isinstance(entry, dict) and isinstance(entry.get("step"), int) else {}


def write(evaluation: Evaluation, rows: Scored, path: Path) -> None:
    """Writes the page."""
    path.write_text(render(evaluation, rows), encoding="utf-8")
