"""What the API's answers mean: is it waiting, and for what; has it ended, and how.

Pure functions of a Job and its pods, as the API gives them (JSON mappings).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

INDEX = "batch.kubernetes.io/job-completion-index"
# What a container waits for that no waiting brings.
_HOPELESS = (
    "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "CreateContainerConfigError",
    "CreateContainerError", "RunContainerError",
)  # fmt: skip

Object = Mapping[str, Any]


@dataclass(frozen=True)
class Waiting:
    """A pod that does not start. hopeless: it will not, whatever is waited for."""

    pod: str
    reason: str
    message: str
    hopeless: bool

    def __str__(self) -> str:
        """One line, with what the cluster says."""
        return f"{self.pod}: {self.reason}: {' '.join(self.message.split())}".rstrip(": ")


@dataclass(frozen=True)
class Ended:
    """A pod that has ended badly.

    index: the worker's rank. code: of its exit. reason: Error, OOMKilled, … disrupted: its node
    went away.
    """

    pod: str
    uid: str
    index: int
    code: int
    reason: str
    disrupted: bool


def index_of(pod: Object) -> int:
    """Returns which worker a pod is."""
    metadata = pod["metadata"]
    found = (metadata.get("annotations") or {}).get(INDEX)
    return int(found if found is not None else (metadata.get("labels") or {}).get(INDEX, 0))


def waiting(pods: Sequence[Object]) -> list[Waiting]:
    """Returns the pods that something keeps from starting, with what that is."""
    found = []
    for pod in pods:
        name, status = pod["metadata"]["name"], pod.get("status") or {}
        if status.get("phase") != "Pending":
            continue
        for condition in status.get("conditions") or ():
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                reason, message = condition.get("reason"), condition.get("message")
                found.append(Waiting(name, reason or "Unschedulable", message or "", False))
        for container in status.get("containerStatuses") or ():
            state = (container.get("state") or {}).get("waiting") or {}
            if (reason := state.get("reason")) in (*_HOPELESS, "ErrImagePull"):
                message = state.get("message") or ""
                if "Image" in reason and container.get("image"):
                    message = f"{container['image']}: {message}"
                # Kubernetes tries to pull once more before it calls that a back-off.
                found.append(Waiting(name, reason, message, reason in _HOPELESS))
    return found


def ended(pods: Sequence[Object]) -> list[Ended]:
    """Returns the pods that have failed, the earliest first.

    One whose node goes away counts as soon as that is known: it may be gone before it has ended.
    """
    found = []
    for pod in pods:
        status = pod.get("status") or {}
        disrupted = any(
            c["type"] == "DisruptionTarget" and c["status"] == "True"
            for c in status.get("conditions") or ()
        )
        if status.get("phase") != "Failed" and not disrupted:
            continue
        state: dict[str, Any] = {}
        for container in status.get("containerStatuses") or ():
            state = (container.get("state") or {}).get("terminated") or {}
        metadata = pod["metadata"]
        found.append(
            (
                str(state.get("finishedAt") or ""),
                Ended(
                    metadata["name"], metadata["uid"], index_of(pod), int(state.get("exitCode", 1)),
                    state.get("reason") or status.get("reason") or "Error", disrupted,
                ),
            )
        )  # fmt: skip
    return [end for _, end in sorted(found, key=lambda pair: pair[0])]


def has_started(pods: Sequence[Object]) -> bool:
    """Whether any pod has run, now or before."""
    return any((pod.get("status") or {}).get("phase") not in (None, "Pending") for pod in pods)


def verdict(job: Object) -> tuple[str, str, str] | None:
    """Returns ("Complete" or "Failed", reason, message) of a Job that has ended."""
    for condition in (job.get("status") or {}).get("conditions") or ():
        if condition["type"] in ("Complete", "Failed") and condition["status"] == "True":
            return condition["type"], condition.get("reason") or "", condition.get("message") or ""
    return None
