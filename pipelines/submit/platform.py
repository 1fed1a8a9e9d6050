"""What a platform that runs pipelines can do, whichever it is, and what is said about a run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from components.reach import without_password
from pipelines import settings
from pipelines.compiled import Compiled
from trainer.errors import UsageError

State = Literal["pending", "running", "succeeded", "failed", "cancelled", "skipped"]
FINAL: tuple[State, ...] = ("succeeded", "failed", "cancelled", "skipped")


@dataclass(frozen=True)
class Request:
    """A pipeline to be run.

    name: of the run, for people; empty: the pipeline's name and the time.
    """

    compiled: Compiled
    parameters: Mapping[str, Any]
    name: str = ""


@dataclass(frozen=True)
class Sent:
    """A run or a schedule that the platform has taken: its id, and where a person sees it."""

    id: str
    link: str


@dataclass(frozen=True)
class Task:
    """A step of a run; `error` is what the platform says of a failed one.

    no_quota: it failed since the platform has nothing to run it on.
    """

    name: str
    state: State
    error: str = ""
    no_quota: bool = False


@dataclass(frozen=True)
class Run:
    """A run at one moment."""

    id: str
    name: str
    state: State
    link: str
    tasks: tuple[Task, ...] = field(default=())
    error: str = ""


class Platform(Protocol):
    """A connection to KFP or Vertex AI, made from the settings of the target.

    Every method raises `UsageError` where the platform cannot be reached, refuses the request, or
    knows no such run.
    """

    def submit(self, request: Request) -> Sent:
        """Starts a run."""

    def schedule(self, request: Request, cron: str) -> Sent:
        """Starts a run at the times of `cron` (see `cron.read`), until the schedule is removed."""

    def unschedule(self, schedule_id: str) -> None:
        """Removes a schedule."""

    def run(self, run_id: str) -> Run:
        """Returns the state of a run."""

    def cancel(self, run_id: str) -> None:
        """Asks for its end; the platform takes its time."""

    def logs(self, run_id: str, step: str) -> Iterator[str]:
        """Yields the lines that a step wrote, oldest first."""


_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# The targets, and their settings that count when a run is sent; all others are in the YAML.
SENT = {
    "kfp": {
        "host", "namespace", "pipeline_root", "service_account", "token", "verify_tls", "tls_ca",
        "experiment", "console",
    },
    "vertex": {
        "project", "location", "pipeline_root", "service_account", "network",
        "reserved_ip_ranges", "kms_key", "labels", "experiment", "api_endpoint",
        "logging_endpoint",
    },
}  # fmt: skip
# Those that count when a run is looked at, or ended.
LOOKED_UP = {
    "kfp": {"host", "token", "verify_tls", "tls_ca", "console"},
    "vertex": {"project", "location", "api_endpoint", "logging_endpoint"},
}
TARGETS = tuple(SENT)


def check_host(host: str) -> None:
    """Raises UsageError if `host` is no address of a KFP API."""
    if not host.startswith(("http://", "https://")):
        raise UsageError(
            f"host ({without_password(host)}): must be the address of the KFP API, http://… or "
            "https://…"
        )


def target_of(run_id: str) -> str:
    """Returns the target whose runs have such ids: KFP's are UUIDs, Vertex's begin with a name."""
    return "kfp" if _UUID.fullmatch(run_id) else "vertex"


def connect(target: str, read: settings.Section) -> Platform:
    """Returns the platform of a target."""
    # Each brings its client along, which takes seconds to import.
    if target == "kfp":
        from pipelines.submit.kfp import KfpPlatform

        return KfpPlatform(read)
    from pipelines.submit.vertex import VertexPlatform

    return VertexPlatform(read)
