"""Where things are: what a run reads, and the run itself, for the next command to find it."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping
from typing import Any

from components.reach import without_password
from pipelines import settings
from pipelines.submit.platform import LOOKED_UP
from trainer.errors import UsageError


def check_readable(given: Mapping[str, Any]) -> None:
    """Checks the places that a pipeline reads.

    Raises:
      UsageError: only this machine could read one.
    """
    places = [("sources", source) for source in given.get("sources", ())]
    for name, place in (*places, *((n, given.get(n, "")) for n in ("baseline", "baseline_run"))):
        if place and "://" not in str(place):
            raise UsageError(
                f"parameter {name} ({place}): a file of this machine; copy it to where the "
                "cluster's steps can read it, and name it as gs://… or s3://…"
            )


def place_of(args: argparse.Namespace, target: str, wanted: Any = None, taken: Any = None) -> str:
    """Returns the flags of a command line that say where its run is, for another command.

    wanted, taken: the settings as they stand, and those of the run, which may be elsewhere.
    """
    given = settings.given_flags(args)
    flags = {key: given[key] for key in LOOKED_UP[target] if key in given and key != "token"}
    if target == "vertex" and wanted and wanted.location != taken.location:
        flags["location"] = taken.location
    words = ["--settings", args.settings] if args.settings else []
    for key, value in sorted(flags.items()):
        words += [settings.flag(key), without_password(value)]
    return "".join(f" {shlex.quote(word)}" for word in words)
