"""`castell export`: flags in, a SavedModel and a few lines (or one JSON object) out."""

from __future__ import annotations

import argparse
import sys

from components.export_model.options import ExportOptions
from trainer.config import explain
from trainer.errors import UsageError
from trainer.quiet import quiet_start
from trainer.run.directory import RunDirectory

HELP = "write a run's model as a checked SavedModel"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's flags."""
    parser.description = (
        "Writes a SavedModel with preprocessing inside and two signatures: serving_default (raw "
        "columns as tensors) and serving_examples (serialized tf.train.Examples). It appears only "
        "if its outputs in a clean process equal the evaluated model's on real rows."
    )
    parser.add_argument("--run", required=True, help="run directory that `castell train` wrote")
    parser.add_argument("--output", required=True, help="directory to write; replaces an older one")
    parser.add_argument("--data", help="dataset to compare on [what the run was trained on]")
    parser.add_argument(
        "--format", action="append", metavar="FORMAT", help="saved_model [saved_model]"
    )
    parser.add_argument(
        "--step", metavar="N|best|newest",
        help="which checkpoint [the best if the run was evaluated in training, else the newest]",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout")


def run(args: argparse.Namespace) -> int:
    """Exports and says what came out."""
    options = _options(args)
    # Before TensorFlow is imported: a wrong path is said at once.
    RunDirectory(options.run).read_config()
    from dataclasses import asdict

    with quiet_start():
        from components.export_model.export import export

    result = export(options, lambda line: print(line, file=sys.stderr, flush=True))
    if args.json:
        import json

        print(json.dumps(asdict(result)))
        return 0
    print(f"model: {result.output} ({result.checkpoint})")
    print(f"inputs, how to say null, outputs: {result.output}/assets.extra/castell.json")
    print(f"compared on {result.rows:,} rows, largest difference:")
    for name, difference in result.parity.items():
        print(f"  {name}: {difference:.2g}")
    return 0


def _options(args: argparse.Namespace) -> ExportOptions:
    from pydantic import ValidationError

    values = {
        "run": args.run,
        "output": args.output,
        "data": args.data,
        "formats": args.format and tuple(args.format),
        "step": args.step,
    }
    try:
        return ExportOptions.model_validate({k: v for k, v in values.items() if v is not None})
    except ValidationError as error:
        raise UsageError(explain(error)) from None
