"""`castell cancel RUN`: ends a run on KFP or Vertex AI, or removes a schedule."""

from __future__ import annotations

import argparse

from pipelines import settings
from pipelines.submit.place import place_of
from pipelines.submit.platform import LOOKED_UP
from pipelines.submit.status import add_run_arguments, connected

HELP = "end a submitted run, or remove a schedule"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's flags."""
    add_run_arguments(parser)
    parser.add_argument(
        "--schedule", action="store_true", help="RUN is a schedule: its next runs are not begun"
    )
    settings.add_flags(parser, LOOKED_UP)


def run(args: argparse.Namespace) -> int:
    """Asks the platform for it."""
    target, platform = connected(args)
    if args.schedule:
        platform.unschedule(args.id)
        print(f"schedule {args.id} is removed; runs that have begun go on")
        return 0
    platform.cancel(args.id)
    place = place_of(args, target)
    print(
        f"run {args.id} is being cancelled; `castell status {args.id} --target {target}{place}` "
        "tells"
    )
    return 0
