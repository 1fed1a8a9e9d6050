"""`castell logs RUN`: what the steps of a run wrote."""

from __future__ import annotations

import argparse

from pipelines import settings
from pipelines.submit.platform import LOOKED_UP
from pipelines.submit.status import add_run_arguments, connected
from trainer.errors import UsageError, suggestion

HELP = "print what the steps of a submitted run wrote"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's flags."""
    add_run_arguments(parser)
    parser.add_argument("--step", help="one step, such as train-model [all that began]")
    settings.add_flags(parser, LOOKED_UP)


def run(args: argparse.Namespace) -> int:
    """Prints the lines, step by step."""
    _, platform = connected(args)
    begun = [task.name for task in platform.run(args.id).tasks if task.state != "pending"]
    if args.step and args.step not in begun:
        near = suggestion(args.step, begun)
        raise UsageError(f"--step {args.step}: no such step{near}: begun: {', '.join(begun)}")
    for step in [args.step] if args.step else begun:
        print(f"▸ {step}")
        for line in platform.logs(args.id, step):
            print(f"    {line}")
    return 0
