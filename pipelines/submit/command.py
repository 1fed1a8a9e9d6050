"""`castell submit`: a pipeline on KFP or Vertex AI, checked before anything is sent."""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from components.google_cloud import check_region
from components.image import check_reference
from components.reach import without_password
from pipelines import foresight, parameters, settings
from pipelines.compile import PIPELINES, compile_to, default_image, tell_oddities
from pipelines.compiled import Compiled
from pipelines.submit import cron, images
from pipelines.submit.choices import choices, described
from pipelines.submit.follow import POLL_SECONDS, NoQuota, follow
from pipelines.submit.place import check_readable, place_of
from pipelines.submit.platform import (
    SENT,
    TARGETS,
    Platform,
    Request,
    check_host,
    connect,
)
from pipelines.submit.show import printable, recorder
from trainer.errors import EXIT_INTERRUPTED, Stopped, UsageError, suggestion

HELP = "run a pipeline on KFP or Vertex AI"
LONGEST_POLL_SECONDS = 86_400.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's flags."""
    parser.add_argument(
        "pipeline", metavar="PIPELINE", help=f"{', '.join(PIPELINES)}, or a compiled .yaml"
    )
    parser.add_argument("--target", required=True, help=" or ".join(TARGETS))
    parser.add_argument(
        "--param", action="append", default=[], metavar="KEY=VALUE",
        help="a parameter of the pipeline; again for each, and for each value of a list",
    )  # fmt: skip
    parser.add_argument("--workers", type=int, help="as `castell compile --workers`")
    parser.add_argument("--image", help="image of every step, as `castell compile --image`")
    parser.add_argument("--name", default="", help="name of the run [the pipeline's]")
    parser.add_argument("--no-cache", action="store_true", help="take no step's earlier outputs")
    parser.add_argument(
        "--require-digest", action="store_true", help="send nothing unless images have digests"
    )
    parser.add_argument("--cron", help="run it again and again, such as '30 2 * * *'")
    parser.add_argument("--show", action="store_true", help="print the requests, send nothing")
    parser.add_argument("--wait", action="store_true", help="follow the run to its end")
    add_poll_flag(parser)
    settings.add_flags(parser)


def add_poll_flag(parser: argparse.ArgumentParser) -> None:
    """Declares how often a run is looked at."""
    parser.add_argument(
        "--poll-seconds", type=_poll_seconds, default=POLL_SECONDS, metavar="SECONDS",
        help=f"between looks [{POLL_SECONDS:g}]",
    )  # fmt: skip


def _poll_seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= LONGEST_POLL_SECONDS:
        raise UsageError(f"--poll-seconds ({text}): must be 0 to {LONGEST_POLL_SECONDS:g}")
    return seconds


def run(args: argparse.Namespace) -> int:
    """Sends the pipeline and prints where it can be seen."""
    check_target(args.target)
    if args.wait and (args.cron is not None or args.show):
        raise UsageError("--wait follows one run: leave --cron and --show out")
    times = None if args.cron is None else cron.read(args.cron, args.target)
    read = settings.read(args.target, settings.given_flags(args), file=args.settings)
    is_file = _is_file(args.pipeline)
    tries = choices(read) if args.wait and not is_file else [read]
    _look_ahead(args, tries, times)
    if not is_file:
        image = default_image() if args.image is None else args.image
        tell_oddities(args.target, read, image)
    requests = _requests(args, tries)
    if args.show:
        _show(args.target, tries[0], requests[0], times)
        return 0
    if times:
        sent = connect(args.target, tries[0]).schedule(requests[0], times)
        print(f"schedule {sent.id}\n{sent.link}")
        return 0
    return _submit(args, tries, requests)


def _look_ahead(args: argparse.Namespace, tries: list[Any], times: str | None) -> None:
    """Refuses addresses and regions that are none; says which settings have no effect."""
    read = tries[0]
    if args.target == "kfp":
        check_host(read.host)
        return
    for one in tries:
        check_region(one.location)
    if read.fallbacks:
        print(
            "castell: fallbacks are left aside: they need --wait, and a pipeline by its name",
            file=sys.stderr,
        )
    if read.experiment and times:
        print(
            f"castell: experiment {read.experiment}: runs of a schedule are not noted there",
            file=sys.stderr,
        )


def _requests(args: argparse.Namespace, tries: list[Any]) -> list[Request]:
    """Returns what is sent for every try; all are checked before the first is sent."""
    compiled = [_compiled(args, read) for read in tries]
    given = parameters.parse(args.param, compiled[0].parameters)
    parameters.check(given)
    foresight.check(compiled[0], given)
    check_readable(given)
    for image in compiled[0].images:
        check_reference(image)
    found = digests(compiled[0].images, required=args.require_digest)
    pinned = [one.with_images(found) for one in compiled]
    if args.no_cache:
        pinned = [one.without_cache() for one in pinned]
    return [Request(one, given, args.name) for one in pinned]


def _submit(args: argparse.Namespace, tries: list[Any], requests: list[Request]) -> int:
    """Starts the run, and starts it elsewhere for as long as there is no quota."""
    for number, (read, request) in enumerate(zip(tries, requests, strict=True), 1):
        platform = connect(args.target, read)
        sent = platform.submit(request)
        print(f"run {sent.id}\n{sent.link}", flush=True)
        if not args.wait:
            break
        try:
            place = place_of(args, args.target, tries[0], read)
            return wait(platform, args.target, sent.id, args.poll_seconds, place)
        except NoQuota as error:
            if number == len(requests):
                raise
            print(f"castell: {error}; next: {described(tries[number])}", file=sys.stderr)
    return 0


def check_target(target: str) -> None:
    """Refuses a target that takes no runs."""
    if target not in TARGETS:
        near = suggestion(target, list(TARGETS))
        here = ": `castell run` is for this machine" if target == "local" else ""
        raise UsageError(f"--target {target!r}{near}: must be {' or '.join(TARGETS)}{here}")


def wait(platform: Platform, target: str, run_id: str, seconds: float, place: str = "") -> int:
    """Follows a run to its end; Ctrl-C or SIGTERM leaves it alone, and says how to end it.

    `place` is what `place_of` returns.
    """
    try:
        follow(platform, run_id, lambda line: print(line, flush=True), seconds=seconds)
    except (KeyboardInterrupt, Stopped) as told:
        print(
            f"\nthe run goes on; `castell status {run_id} --target {target}{place} --wait` follows "
            f"it again, `castell cancel {run_id} --target {target}{place}` ends it",
            file=sys.stderr,
        )
        return EXIT_INTERRUPTED if isinstance(told, KeyboardInterrupt) else Stopped.exit_code
    print(f"run {run_id} succeeded")
    return 0


def digests(tagged: Iterable[str], *, required: bool) -> dict[str, str]:
    """Returns the images with digests for tags, by image, and says what could not be had.

    Raises:
      UsageError: a digest is required and cannot be had.
    """
    found: dict[str, str] = {}
    for image in sorted(tagged):
        try:
            found[image] = images.resolve(image)
        except images.Unresolved as reason:
            trouble = f"image {image}: no digest: {reason}"
            if required:
                raise UsageError(trouble) from None
            print(
                f"castell: {trouble}; if its tag moves, cached results of the older one are taken",
                file=sys.stderr,
            )
    return found


def _is_file(pipeline: str) -> bool:
    return pipeline.endswith((".yaml", ".yml"))


def _compiled(args: argparse.Namespace, read: Any) -> Compiled:
    if _is_file(args.pipeline):
        if args.workers or args.image:
            raise UsageError(f"{args.pipeline} is compiled: --workers and --image come before that")
        for key in settings.given_flags(args):
            if key not in SENT[args.target]:
                raise UsageError(
                    f"{settings.flag(key)}: {args.pipeline} is compiled, which is when it counts"
                )
        if not os.path.isfile(args.pipeline):  # a long name makes Path raise
            raise UsageError(f"{args.pipeline}: no such file")
        compiled = Compiled.read(args.pipeline)
        compiled.check_target(args.target)
        if args.target == "vertex":
            from pipelines.targets.vertex.limits import check_place

            check_place(read)
        return compiled
    if args.pipeline not in PIPELINES:
        near = suggestion(args.pipeline, list(PIPELINES))
        raise UsageError(
            f"no pipeline {args.pipeline!r}{near}: there is {', '.join(PIPELINES)}, or a compiled "
            ".yaml"
        )
    with tempfile.TemporaryDirectory() as directory:
        file = str(Path(directory, f"{args.pipeline}.yaml"))
        compile_to(
            file, args.pipeline, target=args.target, workers=args.workers, image=args.image,
            read=read,
        )  # fmt: skip
        return Compiled.read(file)


def _show(target: str, read: Any, request: Request, times: str | None) -> None:
    """Prints the requests that change something, as the client makes them."""
    with recorder() as recorded:
        if target == "kfp":
            address, moved = without_password(read.host.rstrip("/")), {"host": recorded.address}
        else:
            address = (
                without_password(read.api_endpoint)
                or f"https://{read.location}-aiplatform.googleapis.com"
            )
            moved = {"api_endpoint": recorded.address, "experiment": ""}
        platform = connect(target, read.model_copy(update=moved))
        if times:
            platform.schedule(request, times)
        else:
            platform.submit(request)
    if read.experiment and not (times and target == "vertex"):
        print(
            f"castell: experiment {read.experiment} is looked up, and made if it is not there; its "
            "id is not known here",
            file=sys.stderr,
        )
    for asked in recorded.requests:
        print(printable(asked, address))
