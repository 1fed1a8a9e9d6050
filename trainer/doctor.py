"""`castell doctor`: is all well before a start? The cluster of this process, or a run on a TPU."""

from __future__ import annotations

import argparse
import os

from trainer import config as configuration
from trainer.cluster import doctor as cluster
from trainer.cluster.resolve import resolve
from trainer.errors import UsageError

HELP = "say which cluster this process would join, and why; or whether a run is fit for a TPU"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `castell doctor`."""
    cluster.add_arguments(parser)
    parser.add_argument("--target", choices=("tpu",), help="check the run of --run for a TPU")
    parser.add_argument(
        "--run",
        metavar="CONFIG",
        help="with --target: the run's configuration (YAML or JSON), or a run directory",
    )


def run(args: argparse.Namespace) -> int:
    """Prints the findings; returns 0.

    Raises:
      UsageError: there is a problem; the findings are printed before that.
    """
    if args.target is None:
        if args.run is not None:
            raise UsageError(f"--run {args.run} says nothing without --target tpu")
        return cluster.run(args)
    if args.run is None:
        raise UsageError("--target tpu needs --run CONFIG: the configuration of the run to check")
    from trainer.check import tpu

    spec = resolve(os.environ, alone=args.alone, workers=args.workers)
    return tpu.run(configuration.load(_file(args.run), {}), spec, as_json=args.json)


def _file(path: str) -> str:
    inside = os.path.join(path, "config.json")
    return inside if os.path.isdir(path) else path
