"""`castell validate`: flags in, a verdict out; exit code 2 if the data must not be used."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from trainer.config import explain
from trainer.errors import UsageError

if TYPE_CHECKING:
    from components.validate_data.validation import Validation

HELP = "check a dataset, alone or against a baseline, before training"

_EPILOG = """\
Splits are compared with the train split, and with --baseline or --run all of them with that one's
train split. Shares must exceed their bound by more than chance explains. Without a baseline, splits
by time, by group or by a column may differ by design: what would block only warns there, and so it
does for dates and times, which go on.

A rule is changed for all columns or for one: its bound with <=, its level (block, warn, off) with =
  --rule 'missing<=0.1'  --rule 'drift[dep_delay]<=0.2'  --rule 'new_category=warn'

examples:
  castell validate --data dataset --output validation
  castell validate --data new --run run --rule 'out_of_range<=0' --rule 'skew=off'
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's flags."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = (
        "Reads every row of a dataset once and looks for what should not be trained on. Exit code "
        "2\nif a rule of level `block` is broken, 0 otherwise.\n\n" + _rules()
    )
    parser.epilog = _EPILOG
    add = parser.add_argument
    add("--data", required=True, help="dataset directory")
    add("--baseline", metavar="DATASET", help="dataset to compare with: its train split")
    add("--run", metavar="RUN", help="run to compare with: the data it was trained on")
    add(
        "--output",
        metavar="DIR",
        help="directory of validation.json and validation.html; an older one is replaced",
    )
    add("--rule", action="append", default=[], metavar="RULE",
        help="change a rule's bound or level; repeatable, later ones count")  # fmt: skip
    add("--json", action="store_true", help="print validation.json on stdout")


def _rules() -> str:
    from components.validate_data.rules import KINDS

    lines = ["rules, with their level and the largest value that passes:"]
    for name, kind in KINDS.items():
        bound = "" if kind.default.threshold is None else f"{kind.default.threshold:g}"
        lines.append(f"  {name:14} {kind.default.level:5} {bound:>5}  {kind.meaning}")
    return "\n".join(lines)


def run(args: argparse.Namespace) -> int:
    """Validates and says what came out."""
    from components.validate_data.validate import Blocked, validate

    options = _options(args)
    validation = validate(
        options, lambda line: print(f"validate: {line}", file=sys.stderr, flush=True)
    )
    if args.json:
        print(validation.model_dump_json())
    else:
        print_findings(validation, options.output)
    if not validation.verdict.passed:
        sys.stdout.flush()
        raise Blocked.of(validation)
    return 0


def _options(args: argparse.Namespace) -> Any:
    from pydantic import ValidationError

    from components.validate_data.options import ValidateOptions

    values = {
        "data": args.data,
        "baseline": args.baseline,
        "run": args.run,
        "output": args.output,
        "rules": tuple(args.rule),
    }
    try:
        return ValidateOptions.model_validate({k: v for k, v in values.items() if v is not None})
    except ValidationError as error:
        raise UsageError(explain(error)) from None


def print_findings(validation: Validation, output: str | None) -> None:
    """Prints every finding and the verdict."""
    from components.validate_data.validate import REPORT, told

    for finding in validation.findings:
        print(f"{finding.level:5} {told(finding)}")
        if finding.row_ids:
            more = ", …" if (finding.rows or 0) > len(finding.row_ids) else ""
            print(f"      rows {', '.join(map(str, finding.row_ids))}{more}")
    verdict = validation.verdict
    print(
        f"verdict: {'passed' if verdict.passed else 'blocked'} "
        f"({verdict.blocked} blocking, {verdict.warned} warnings)"
    )
    if output is not None:
        print(f"report: {output}/{REPORT}")
