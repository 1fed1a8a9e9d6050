"""What each request means: verbs on resources, rights, patches. No HTTP here, see server.py."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.doubles.kubernetes import garbage
from tests.doubles.kubernetes.admission import admit, admit_change
from tests.doubles.kubernetes.selectors import Matches, by_fields, by_labels
from tests.doubles.kubernetes.status import (
    Json,
    Refused,
    bad_request,
    conflict,
    forbidden,
    not_found,
)
from tests.doubles.kubernetes.store import KINDS, PODS, SERVICES, Kind, Store

# How long a watch lasts that names no time; the API server takes 30 to 60 minutes.
_WATCH_SECONDS = 1800.0
_MERGE = {"application/merge-patch+json", "application/strategic-merge-patch+json"}


@dataclass(frozen=True)
class Request:
    """`name` is empty where all of a kind are meant; `part` is `log`, `status` or nothing."""

    method: str
    kind: Kind
    namespace: str
    name: str
    part: str
    query: dict[str, str]
    body: Any
    content_type: str

    def flag(self, name: str) -> bool:
        return self.query.get(name, "").lower() in {"true", "1"}

    @property
    def verb(self) -> str:
        """As a Role names it."""
        if self.method == "GET" and not self.name:
            return "watch" if self.flag("watch") else "list"
        whole = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch"}
        return whole.get(self.method) or ("delete" if self.name else "deletecollection")

    @property
    def resource(self) -> str:
        return f"{self.kind.plural}/{self.part}" if self.part else self.kind.plural


class Api:
    """`denied`: (verb, resource) that a caller has no right to; `("create", "jobs")`."""

    def __init__(self, store: Store, denied: set[tuple[str, str]]) -> None:
        self.store, self.denied = store, denied

    def answer(self, request: Request) -> tuple[int, Json] | Iterator[Json]:
        """Code and object, or the events of a watch.

        Raises:
          Refused: whatever is wrong with it.
        """
        self.check(request)
        kind, place, name = request.kind, request.namespace, request.name
        if request.verb == "create":
            return 201, self.store.create(kind, place, admit(kind, request.body))
        if request.verb == "watch":
            since = request.query.get("resourceVersion", "")
            seconds = float(request.query.get("timeoutSeconds") or _WATCH_SECONDS)
            start = int(since) if since not in {"", "0"} else None
            return self.store.watch(kind, place, self._matches(request), start, seconds)
        if request.verb == "list":
            return 200, self._list(request)
        if request.verb == "deletecollection":
            listed = self._list(request)
            for thing in listed["items"]:
                self._delete(request, thing)
            return 200, listed
        if request.verb in {"update", "patch"}:
            return 200, self._change(request)
        thing = self.store.get(kind, place, name)
        return 200, thing if request.verb == "get" else self._delete(request, thing)

    def check(self, request: Request) -> None:
        """Raises Refused (403) without the right."""
        if (request.verb, request.resource) in self.denied:
            qualified = request.kind.qualified
            if request.part:
                qualified = request.resource
            raise forbidden(
                request.verb, qualified, request.kind.group, request.namespace, request.name
            )

    def _list(self, request: Request) -> Json:
        kind = request.kind
        with self.store.changed:
            items = self.store.list(kind, request.namespace, self._matches(request))
            version = str(self.store.version)
        return {
            "kind": f"{kind.kind}List", "apiVersion": kind.api_version,
            "metadata": {"resourceVersion": version}, "items": items,
        }  # fmt: skip

    def _matches(self, request: Request) -> Matches:
        labels = by_labels(request.query.get("labelSelector", ""))
        fields = by_fields(request.query.get("fieldSelector", ""), request.kind.fields)
        return lambda thing: labels(thing) and fields(thing)

    def _change(self, request: Request) -> Json:
        """A PUT or PATCH: of all but the status, or of the status alone."""
        version = (request.body.get("metadata") or {}).get("resourceVersion")
        if request.verb == "patch" and request.content_type not in _MERGE:
            words = f"this double of Kubernetes takes merge patches, not {request.content_type}"
            raise Refused(415, "UnsupportedMediaType", words)

        def change(thing: Json) -> None:
            if version not in {None, "", thing["metadata"]["resourceVersion"]}:
                raise conflict(request.kind.qualified, request.name)
            new = merged(thing, request.body) if request.verb == "patch" else request.body
            if request.part == "status":
                thing["status"] = copy.deepcopy(new["status"])
                return
            admit_change(request.kind, thing, new)
            thing["spec"] = copy.deepcopy(new["spec"])
            for key in ("labels", "annotations", "finalizers", "ownerReferences"):
                if key in new.get("metadata", {}):
                    thing["metadata"][key] = copy.deepcopy(new["metadata"][key])

        changed = self.store.update(request.kind, request.namespace, request.name, change)
        if changed is None:
            raise not_found(request.kind.qualified, request.name)
        return changed

    def _delete(self, request: Request, thing: Json) -> Json:
        body = request.body or {}
        policy = body.get("propagationPolicy") or request.query.get("propagationPolicy")
        grace = body.get("gracePeriodSeconds", request.query.get("gracePeriodSeconds"))
        if policy not in {None, "Orphan", "Background", "Foreground"}:
            raise bad_request(f"invalid propagationPolicy: {policy}")
        seconds = None if grace is None else int(grace)
        deleted = garbage.delete(self.store, request.kind, thing, policy, seconds)
        if request.kind in {PODS, SERVICES} or policy == "Foreground":
            return deleted
        details = {"name": request.name, "group": request.kind.group, "kind": request.kind.plural}
        details["uid"] = thing["metadata"]["uid"]
        return {
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
            "details": details,
        }  # fmt: skip


def readable(pod: Json, container: str) -> bool:
    """Whether there is a log; a pod without a node has an empty one.

    Raises:
      Refused: 400, the container is another one, or has not started.
    """
    name, only = pod["metadata"]["name"], pod["spec"]["containers"][0]["name"]
    if container not in {"", only}:
        raise bad_request(f"container {container} is not valid for pod {name}")
    if not pod["spec"].get("nodeName"):
        return False
    states = pod["status"].get("containerStatuses") or [{"state": {}}]
    waiting = states[0]["state"].get("waiting", {}).get("reason", "ContainerCreating")
    if not states[0]["state"].keys() & {"running", "terminated"}:
        words = {
            "ImagePullBackOff": "trying and failing to pull image",
            "ErrImagePull": "image can't be pulled",
        }
        why = words.get(waiting, waiting)
        raise bad_request(f'container "{only}" in pod "{name}" is waiting to start: {why}')
    return True


def merged(old: Any, patch: Any) -> Any:
    """A JSON merge patch (RFC 7386). Lists are replaced, also in what is sent as strategic."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    new = copy.deepcopy(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            new.pop(key, None)
        else:
            new[key] = merged(new.get(key), value)
    return new


def discovery(path: str) -> Json | None:
    """`/version`, `/api`, `/apis` and the lists of resources."""
    groups = sorted({kind.group for kind in KINDS if kind.group})
    fixed: dict[str, Json] = {
        "/version": {
            "major": "1", "minor": "31", "gitVersion": "v1.31.0+castell-double", "gitCommit": "",
            "gitTreeState": "clean", "buildDate": "2024-08-13T00:00:00Z", "goVersion": "",
            "compiler": "", "platform": "linux/amd64",
        },
        "/api": {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []},
        "/apis": {
            "kind": "APIGroupList", "apiVersion": "v1",
            "groups": [group_of(name) for name in groups],
        },
    }  # fmt: skip
    fixed |= {
        f"/apis/{name}": {"kind": "APIGroup", "apiVersion": "v1", **group_of(name)}
        for name in groups
    }
    for group in ("", *groups):
        base = f"/apis/{group}/v1" if group else "/api/v1"
        fixed[base] = {
            "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": base.split("/", 2)[2],
            "resources": [
                {
                    "name": kind.plural, "singularName": "", "namespaced": True, "kind": kind.kind,
                    "verbs": ["create", "delete", "get", "list", "patch", "update", "watch"],
                }
                for kind in KINDS if kind.group == group
            ],
        }  # fmt: skip
    return fixed.get(path)


def group_of(name: str) -> Json:
    version = {"groupVersion": f"{name}/v1", "version": "v1"}
    return {"name": name, "versions": [version], "preferredVersion": version}
