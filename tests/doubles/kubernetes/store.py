"""The objects, their versions and what changed: what etcd and the API server's cache are.

Everything that happens is a change with a resourceVersion; a watch is a reader of these changes.
An object that is being deleted stays as long as it has finalizers or, a pod, a container that runs.
Objects are plain JSON; what goes in or comes out is a copy.
"""

from __future__ import annotations

import copy
import random
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from tests.doubles.kubernetes import status
from tests.doubles.kubernetes.selectors import Matches
from tests.doubles.kubernetes.status import Json

# The alphabet of generated names: no vowels, nothing that looks like something else.
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_META = frozenset({"metadata.name", "metadata.namespace"})


@dataclass(frozen=True)
class Kind:
    """`fields`: what a field selector may name."""

    kind: str
    plural: str
    group: str = ""
    fields: frozenset[str] = _META

    @property
    def api_version(self) -> str:
        return f"{self.group}/v1" if self.group else "v1"

    @property
    def qualified(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


JOBS = Kind("Job", "jobs", "batch", _META | {"status.successful"})
PODS = Kind(
    "Pod", "pods", "",
    _META | {"spec.nodeName", "spec.restartPolicy", "status.phase", "status.podIP"},
)  # fmt: skip
SERVICES = Kind("Service", "services")
POLICIES = Kind("NetworkPolicy", "networkpolicies", "networking.k8s.io")
EVENTS = Kind(
    "Event", "events", "",
    _META | {"reason", "type"}
    | {f"involvedObject.{part}" for part in ("kind", "namespace", "name", "uid")},
)  # fmt: skip
KINDS = (JOBS, PODS, SERVICES, POLICIES, EVENTS)


@dataclass(frozen=True)
class Change:
    """`before`: the object as it was, for selectors that it matched until now."""

    version: int
    type: str
    kind: Kind
    thing: Json
    before: Json | None


class Store:
    """Thread-safe. `changed` is notified of every change."""

    def __init__(self) -> None:
        self.changed = threading.Condition(threading.RLock())
        self.cuts = 0
        self.closed = False
        self._things: dict[tuple[Kind, str, str], Json] = {}
        self._changes: list[Change] = []

    @property
    def version(self) -> int:
        return len(self._changes)

    def create(self, kind: Kind, namespace: str, thing: Json) -> Json:
        """Names, numbers and keeps a new object.

        Raises:
          Refused: 409, there is one of that name.
        """
        thing = copy.deepcopy(thing)
        meta = thing.setdefault("metadata", {})
        with self.changed:
            if not meta.get("name"):
                meta["name"] = meta.get("generateName", "") + random_ending()
            if (kind, namespace, meta["name"]) in self._things:
                raise status.already_exists(kind.qualified, meta["name"])
            meta.setdefault("uid", str(uuid.uuid4()))
            meta.update(namespace=namespace, creationTimestamp=now(), generation=1)
            thing.update(kind=kind.kind, apiVersion=kind.api_version)
            return self._keep("ADDED", kind, thing)

    def get(self, kind: Kind, namespace: str, name: str) -> Json:
        """Raises Refused (404) where there is none."""
        with self.changed:
            try:
                return copy.deepcopy(self._things[kind, namespace, name])
            except KeyError:
                raise status.not_found(kind.qualified, name) from None

    def find(self, kind: Kind, namespace: str, name: str) -> Json | None:
        with self.changed:
            return copy.deepcopy(self._things.get((kind, namespace, name)))

    def list(
        self, kind: Kind, namespace: str = "", matches: Matches = lambda thing: True
    ) -> list[Json]:
        """By namespace and name; all namespaces if none is given."""
        with self.changed:
            return [
                copy.deepcopy(thing)
                for (of, place, _), thing in sorted(self._things.items(), key=lambda i: i[0][1:])
                if of is kind and namespace in {"", place} and matches(thing)
            ]

    def everything(self) -> Iterator[tuple[Kind, Json]]:
        with self.changed:
            found = [(key[0], copy.deepcopy(thing)) for key, thing in self._things.items()]
        yield from found

    def update(
        self, kind: Kind, namespace: str, name: str, change: Callable[[Json], None]
    ) -> Json | None:
        """Applies `change`; None if the object is gone. What changes nothing is no change."""
        with self.changed:
            key = (kind, namespace, name)
            if key not in self._things:
                return None
            thing = copy.deepcopy(self._things[key])
            change(thing)
            if thing.get("spec") != self._things[key].get("spec"):
                thing["metadata"]["generation"] = thing["metadata"].get("generation", 0) + 1
            if thing == self._things[key]:
                return thing
            if is_free(thing):
                return self._drop(kind, thing)
            return self._keep("MODIFIED", kind, thing)

    def delete(self, kind: Kind, namespace: str, name: str, grace_seconds: int = 0) -> Json:
        """Marks as being deleted and, unless something holds it, removes.

        Raises:
          Refused: 404.
        """

        def mark(thing: Json) -> None:
            meta = thing["metadata"]
            if grace_seconds < meta.get("deletionGracePeriodSeconds", grace_seconds + 1):
                meta["deletionGracePeriodSeconds"] = grace_seconds
            meta.setdefault("deletionTimestamp", now())

        deleted = self.update(kind, namespace, name, mark)
        if deleted is None:
            raise status.not_found(kind.qualified, name)
        return deleted

    def watch(
        self, kind: Kind, namespace: str, matches: Matches, since: int | None, seconds: float
    ) -> Iterator[Json]:
        """Yields events after version `since`; without it, first what is there as ADDED."""
        end = time.monotonic() + seconds
        cuts = self.cuts
        with self.changed:
            position = self.version if since is None else since
            standing = self.list(kind, namespace, matches) if since is None else []
        for thing in standing:
            yield {"type": "ADDED", "object": thing}
        while not self.closed and cuts == self.cuts and (left := end - time.monotonic()) > 0:
            with self.changed:
                while self.version == position and not self.closed and cuts == self.cuts:
                    if not self.changed.wait(left):
                        break
                new, position = self._changes[position:], self.version
            for change in new:
                if change.kind is kind and namespace in {"", change.thing["metadata"]["namespace"]}:
                    yield from as_seen(change, matches)

    def cut(self) -> None:
        """Ends every watch and followed log, as the API server does now and then."""
        with self.changed:
            self.cuts += 1
            self.changed.notify_all()

    def close(self) -> None:
        with self.changed:
            self.closed = True
            self.changed.notify_all()

    def tell(self, about: Json, level: str, reason: str, message: str, source: str) -> None:
        """Records an Event of `about`; one of the same words is counted up."""
        meta = about["metadata"]
        told = {"reason": reason, "message": message, "type": level}
        with self.changed:
            for event in self.list(EVENTS, meta["namespace"]):
                same = {key: event[key] for key in told} == told
                if same and event["involvedObject"]["uid"] == meta["uid"]:
                    self.update(EVENTS, meta["namespace"], event["metadata"]["name"], count_up)
                    return
            involved = {key: meta[key] for key in ("name", "namespace", "uid", "resourceVersion")}
            self.create(
                EVENTS,
                meta["namespace"],
                {
                    "metadata": {"name": f"{meta['name']}.{uuid.uuid4().hex[:16]}"},
                    **told,
                    "involvedObject": {
                        "kind": about["kind"], "apiVersion": about["apiVersion"], **involved,
                    },
                    "source": {"component": source}, "reportingComponent": source,
                    "firstTimestamp": now(), "lastTimestamp": now(), "count": 1,
                },
            )  # fmt: skip

    def _keep(self, event: str, kind: Kind, thing: Json) -> Json:
        meta = thing["metadata"]
        key = (kind, meta["namespace"], meta["name"])
        meta["resourceVersion"] = str(self.version + 1)
        before, self._things[key] = self._things.get(key), thing
        self._changes.append(Change(self.version + 1, event, kind, thing, before))
        self.changed.notify_all()
        return copy.deepcopy(thing)

    def _drop(self, kind: Kind, thing: Json) -> Json:
        before = self._things.pop((kind, thing["metadata"]["namespace"], thing["metadata"]["name"]))
        thing["metadata"]["resourceVersion"] = str(self.version + 1)
        self._changes.append(Change(self.version + 1, "DELETED", kind, thing, before))
        self.changed.notify_all()
        return copy.deepcopy(thing)


def as_seen(change: Change, matches: Matches) -> Iterator[Json]:
    """An object that begins to match comes as ADDED, one that ceases to as DELETED."""
    was = change.before is not None and matches(change.before)
    is_now = matches(change.thing)
    if change.type == "DELETED":
        if was or is_now:
            yield {"type": "DELETED", "object": change.thing}
    elif is_now:
        yield {"type": "MODIFIED" if was else "ADDED", "object": change.thing}
    elif was:
        yield {"type": "DELETED", "object": change.thing}


def is_free(thing: Json) -> bool:
    """Whether an object that is being deleted may go."""
    meta = thing["metadata"]
    waits = meta.get("deletionGracePeriodSeconds", 0) > 0 or meta.get("finalizers")
    return "deletionTimestamp" in meta and not waits


def count_up(event: Json) -> None:
    event["count"] += 1
    event["lastTimestamp"] = now()


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def random_ending() -> str:
    return "".join(random.choices(_ALPHABET, k=5))
