"""How far a Job is: its pods at one moment, its indexes, what is remembered of failures."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from tests.doubles.kubernetes import pods
from tests.doubles.kubernetes.backoff import Record
from tests.doubles.kubernetes.status import Json


@dataclass
class Memory:
    """What the controller keeps of a Job beside its status."""

    whole: Record = field(default_factory=Record)
    by_index: dict[int, Record] = field(default_factory=dict)


@dataclass
class Look:
    """A Job and its pods at one moment; what is to become of the Job is written into `job`."""

    job: Json
    all: list[Json]
    memory: Memory

    @property
    def spec(self) -> Json:
        return self.job["spec"]

    @property
    def status(self) -> Json:
        return self.job["status"]

    @property
    def per_index(self) -> int | None:
        limit: int | None = self.spec.get("backoffLimitPerIndex")
        return limit

    @property
    def active(self) -> list[Json]:
        return [pod for pod in self.all if pods.is_active(pod)]

    @property
    def terminating(self) -> list[Json]:
        return [pod for pod in self.all if pods.is_deleting(pod) and not pods.is_terminal(pod)]

    def indexes(self, key: str) -> set[int]:
        return parse(self.status.get(key) or "")

    def has_failed(self, pod: Json) -> bool:
        """Where only failed pods are replaced, one that is going has not failed yet."""
        if pod["status"]["phase"] == "Failed":
            return True
        waits = self.spec["podReplacementPolicy"] == "Failed"
        return not waits and pods.is_deleting(pod) and pod["status"]["phase"] != "Succeeded"


def ending(look: Look) -> bool:
    interim = ("FailureTarget", "SuccessCriteriaMet")
    return any(pods.condition(look.job, kind) == "True" for kind in interim)


def past_deadline(job: Json) -> bool:
    seconds = job["spec"].get("activeDeadlineSeconds")
    if seconds is None or job["spec"]["suspend"]:
        return False
    started = datetime.strptime(job["status"]["startTime"], "%Y-%m-%dT%H:%M:%SZ")
    passed = datetime.now(UTC) - started.replace(tzinfo=UTC)
    return passed.total_seconds() >= seconds


def parse(text: str) -> set[int]:
    """`0,2-4` as a set."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def written(indexes: set[int]) -> str:
    """A set as `0,2-4`; two in a row are written with a comma."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and index == runs[-1][-1] + 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ",".join(
        f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs
    )
