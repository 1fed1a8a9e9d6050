"""`castell traffic ENDPOINT`: shares of an endpoint of Vertex AI; promotion and rollback."""

from __future__ import annotations

import argparse
import sys

from pipelines import settings
from trainer.errors import UsageError

HELP = "shift an endpoint's traffic to its newest model, or back"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's flags."""
    parser.add_argument("endpoint", metavar="NAME", help="the endpoint's name")
    parser.add_argument("--percent", type=int, help="share of the newest model, 1 to 100")
    parser.add_argument(
        "--rollback", action="store_true", help="what was there before takes all again"
    )
    parser.add_argument(
        "--undeploy-idle", action="store_true", help="free the machines of models without traffic"
    )
    settings.add_flags(parser, {"vertex": {"project", "location", "api_endpoint"}})


def run(args: argparse.Namespace) -> int:
    """Shifts the traffic, if told to, and prints the shares."""
    if args.percent is not None and (args.rollback or not 1 <= args.percent <= 100):
        raise UsageError(f"--percent ({args.percent}): must be 1 to 100, without --rollback")
    changes = args.rollback or args.percent is not None
    if args.undeploy_idle and not changes:
        raise UsageError("--undeploy-idle: goes with --percent or --rollback")
    read = settings.read("vertex", settings.given_flags(args), file=args.settings)
    if not read.project:
        raise UsageError("project is not set: --project, CASTELL_VERTEX_PROJECT or the file")
    from components.deploy_model.deploy import endpoint_called, shift
    from components.google_cloud import connect

    aiplatform = connect(read.project, read.location, read.api_endpoint)
    place = endpoint_called(aiplatform, args.endpoint)
    if place is None:
        raise UsageError(f"endpoint {args.endpoint}: there is none of that name in {read.location}")
    shares = dict(place.traffic_split)
    if changes:
        before = {model: share for model, share in shares.items() if share}
        percent = 0 if args.rollback else args.percent
        shares = shift(place, percent, undeploy_idle=args.undeploy_idle)
        if before == {model: share for model, share in shares.items() if share}:
            print("castell: the shares were so before: nothing has changed", file=sys.stderr)
    for model, share in sorted(shares.items(), key=lambda item: -item[1]):
        print(f"{share:3} %  {model}")
    return 0
