"""What the parts of the double ask of a pod, and do to one."""

from __future__ import annotations

from tests.doubles.kubernetes.status import Json
from tests.doubles.kubernetes.store import PODS, Store, now

INDEX = "batch.kubernetes.io/job-completion-index"
TRACKING = "batch.kubernetes.io/job-tracking"
DEFAULT_GRACE_SECONDS = 30


def is_terminal(pod: Json) -> bool:
    return pod["status"]["phase"] in {"Succeeded", "Failed"}


def is_deleting(pod: Json) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def is_active(pod: Json) -> bool:
    return not is_terminal(pod) and not is_deleting(pod)


def is_ready(pod: Json) -> bool:
    return condition(pod, "Ready") == "True"


def is_tracked(pod: Json) -> bool:
    """Whether the Job controller has yet to count it."""
    return TRACKING in pod["metadata"].get("finalizers", [])


def index_of(pod: Json) -> int:
    return int(pod["metadata"].get("annotations", {}).get(INDEX, -1))


def owner_of(thing: Json) -> str:
    """The uid of the controller that a thing belongs to, or nothing."""
    owners = thing["metadata"].get("ownerReferences", [])
    return next((owner["uid"] for owner in owners if owner.get("controller")), "")


def condition(thing: Json, kind: str) -> str:
    """The status of a condition; `Unknown` where there is none."""
    found = [c for c in thing["status"].get("conditions", []) if c["type"] == kind]
    return found[0]["status"] if found else "Unknown"


def set_condition(thing: Json, kind: str, value: str, reason: str = "", message: str = "") -> None:
    conditions = thing["status"].setdefault("conditions", [])
    words = {"status": value, "reason": reason, "message": message}
    words = {key: word for key, word in words.items() if word}
    for place, old in enumerate(conditions):
        if old["type"] == kind:
            if {key: old.get(key, "") for key in ("status", "reason", "message")} != {
                "status": value, "reason": reason, "message": message,
            }:  # fmt: skip
                conditions[place] = {"type": kind, **words, "lastTransitionTime": now()}
            return
    conditions.append({"type": kind, **words, "lastTransitionTime": now()})


def release(thing: Json, finalizer: str) -> None:
    """Takes a finalizer off; the last one to go lets a deleted object go."""
    left = [name for name in thing["metadata"].get("finalizers", []) if name != finalizer]
    thing["metadata"]["finalizers"] = left


def count(store: Store, pod: Json) -> None:
    """The Job controller has counted a pod."""
    meta = pod["metadata"]
    store.update(PODS, meta["namespace"], meta["name"], lambda thing: release(thing, TRACKING))


def delete_pod(store: Store, namespace: str, name: str, grace_seconds: int | None = None) -> Json:
    """Asks for a pod's end; one that never got a node, or is over, needs no grace.

    Raises:
      Refused: 404.
    """
    pod = store.get(PODS, namespace, name)
    if grace_seconds is None:
        grace_seconds = pod["spec"].get("terminationGracePeriodSeconds", DEFAULT_GRACE_SECONDS)
    runs = pod["spec"].get("nodeName") and not is_terminal(pod)
    return store.delete(PODS, namespace, name, grace_seconds if runs else 0)
