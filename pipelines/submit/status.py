"""`castell status RUN`: a run on KFP or Vertex AI, step by step."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from pipelines import settings
from pipelines.submit.command import add_poll_flag, check_target, wait
from pipelines.submit.place import place_of
from pipelines.submit.platform import LOOKED_UP, TARGETS, Platform, Run, connect, target_of

HELP = "say what became of a submitted run"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's flags."""
    add_run_arguments(parser)
    parser.add_argument("--wait", action="store_true", help="follow the run to its end")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    add_poll_flag(parser)
    settings.add_flags(parser, LOOKED_UP)


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares which run, and where."""
    parser.add_argument("id", metavar="RUN", help="id that `castell submit` printed")
    parser.add_argument("--target", help=f"{' or '.join(TARGETS)} [by the id]")


def run(args: argparse.Namespace) -> int:
    """Prints the run's state and those of its steps."""
    target, platform = connected(args)
    if args.wait:
        return wait(platform, target, args.id, args.poll_seconds, place_of(args, target))
    found = platform.run(args.id)
    print(json.dumps(asdict(found)) if args.json else "\n".join(_lines(found)))
    return 0


def connected(args: argparse.Namespace) -> tuple[str, Platform]:
    """Returns the target and its platform, as the flags and settings say."""
    target = args.target or target_of(args.id)
    check_target(target)
    read = settings.read(target, settings.given_flags(args), file=args.settings)
    return target, connect(target, read)


def _lines(found: Run) -> list[str]:
    lines = [f"{found.name}: {found.state}", found.link]
    for task in found.tasks:
        lines.append(f"  {task.name:20} {task.state}" + (f"  {task.error}" if task.error else ""))
    return [*lines, *([found.error] if found.error else [])]
