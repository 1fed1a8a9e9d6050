"""`castell evaluate`: flags in, a directory and a few lines (or one JSON object) out."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from components.evaluate_model.options import EvaluateOptions
from trainer.config import explain
from trainer.errors import CastellError, UsageError
from trainer.run.directory import RunDirectory

if TYPE_CHECKING:
    from components.evaluate_model.evaluation import Evaluation

HELP = "measure a run on a whole split, by slice, against thresholds"
PROGRESS_SECONDS = 2.0
WORST_SLICES = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's flags."""
    parser.description = (
        "Evaluates a run on every row of a split, once, and writes evaluation.json, "
        "predictions.parquet and report.html. A verdict that fails changes the exit code only with "
        '--require-pass; it stands as "verdict" in evaluation.json and --json.'
    )
    parser.add_argument("--run", required=True, help="run directory that `castell train` wrote")
    parser.add_argument("--data", required=True, help="dataset directory")
    parser.add_argument("--split", default="test", help="split to evaluate, whole [test]")
    parser.add_argument("--output", required=True, help="directory to write; replaces an older one")
    parser.add_argument(
        "--slice", action="append", default=[], metavar="COL", help="report by this column too"
    )
    parser.add_argument(
        "--threshold", action="append", default=[], metavar="RULE",
        help="rule of the verdict: 'auc>=0.7', 'auc[carrier=AA]>=0.6', 'auc>=baseline-0.01'",
    )  # fmt: skip
    parser.add_argument("--baseline", metavar="RUN", help="run to compare with, on the same rows")
    parser.add_argument(
        "--step", metavar="N|best|newest",
        help="which checkpoint [the best if the run was evaluated in training, else the newest]",
    )  # fmt: skip
    parser.add_argument("--batch", help="rows a step over all replicas [4096]")
    parser.add_argument("--cpu-replicas", help="split the CPU into N devices; same figures [1]")
    parser.add_argument(
        "--require-pass",
        action="store_true",
        help="end with exit code 1 if a threshold does not hold (`evaluate … && export …`)",
    )
    parser.add_argument("--json", action="store_true", help="print evaluation.json on stdout")


def run(args: argparse.Namespace) -> int:
    """Evaluates and says what came out."""
    options = _options(args)
    # Before TensorFlow is imported: a wrong path is said at once.
    RunDirectory(options.run).read_config()
    from components.evaluate_model.evaluate import evaluate

    evaluation = evaluate(options, ProgressLines())
    if args.json:
        print(evaluation.model_dump_json())
    else:
        print_figures(evaluation, options.output)
    if args.require_pass and not evaluation.verdict.passed:
        failed = [rule.rule for rule in evaluation.verdict.rules if not rule.passed]
        raise VerdictFailed(f"the model did not pass: {', '.join(failed)}")
    return 0


def _options(args: argparse.Namespace) -> EvaluateOptions:
    from pydantic import ValidationError

    values: dict[str, Any] = {
        "run": args.run,
        "data": args.data,
        "split": args.split,
        "output": args.output,
        "slices": tuple(args.slice),
        "thresholds": tuple(args.threshold),
        "baseline": args.baseline,
        "step": args.step,
        "batch": args.batch,
        "cpu_replicas": args.cpu_replicas,
    }
    try:
        return EvaluateOptions.model_validate({k: v for k, v in values.items() if v is not None})
    except ValidationError as error:
        raise UsageError(explain(error)) from None


class VerdictFailed(CastellError):
    """A threshold does not hold, and the caller wants to stop for it."""


class ProgressLines:
    """A line on stderr every few seconds, and one at the end of each run."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, run: str, done: int, rows: int) -> None:
        """Takes how far the prediction of a run is."""
        now = time.monotonic()
        if done < rows and now - self._last < PROGRESS_SECONDS:
            return
        self._last = now
        print(f"evaluate {run}: {done:,} of {rows:,} rows", file=sys.stderr, flush=True)


def print_figures(evaluation: Evaluation, output: str) -> None:
    """Prints every figure, every rule and the verdict."""
    print(f"{evaluation.split}: {evaluation.rows:,} rows, {evaluation.checkpoint}")
    for name, value in evaluation.metrics.items():
        shown = f"none ({evaluation.reasons[name]})" if value is None else f"{value:.6g}"
        change = evaluation.baseline.differences[name] if evaluation.baseline else None
        print(f"  {name:18} {shown}" + ("" if change is None else f"  ({change:+.6g})"))
    for line in worst_slices(evaluation):
        print(line)
    for rule in evaluation.verdict.rules:
        found = "none" if rule.value is None else f"{rule.value:.6g}"
        print(f"  {'holds' if rule.passed else 'FAILS'}  {rule.rule}  (value: {found})")
    if evaluation.verdict.rules:
        print(f"verdict: {'passed' if evaluation.verdict.passed else 'failed'}")
    print(f"report: {output}/report.html")


def worst_slices(evaluation: Evaluation) -> Iterator[str]:
    """Yields a line a sliced column: where the first figure (auc, accuracy, rmse) is worst."""
    from components.evaluate_model.metrics import LOWER_IS_BETTER

    name = next(iter(evaluation.metrics))
    parts: dict[str, list[tuple[float, str]]] = {}
    for part in evaluation.slices:
        value = part.metrics[name]
        for column, cell in part.slice.items():
            if value is not None:
                parts.setdefault(column, []).append((value, f"{cell} {value:.4g} ({part.rows:,})"))
    for column, figures in parts.items():
        worst = sorted(figures, reverse=name in LOWER_IS_BETTER)[:WORST_SLICES]
        yield f"  {name} is worst by {column}: {', '.join(text for _, text in worst)}"
