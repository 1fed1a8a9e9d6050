"""What goes when its owner goes: ownerReferences and the three ways to delete an owner.

After https://kubernetes.io/docs/concepts/architecture/garbage-collection/. An object all of whose
owners are gone is deleted, also one that was *created* with an owner that never was. A Job that is
deleted without a propagationPolicy leaves its pods as orphans (batch/v1's default, of old).
"""

from __future__ import annotations

from tests.doubles.kubernetes import pods
from tests.doubles.kubernetes.status import Json
from tests.doubles.kubernetes.store import JOBS, PODS, Kind, Store

FOREGROUND = "foregroundDeletion"


def delete(store: Store, kind: Kind, thing: Json, policy: str | None, grace: int | None) -> Json:
    """What a DELETE request does; raises Refused (404) if somebody else was faster."""
    meta = thing["metadata"]
    namespace, name = meta["namespace"], meta["name"]
    policy = policy or ("Orphan" if kind is JOBS else "Background")
    if policy == "Orphan":
        for of, other in list(store.everything()):
            disown(store, of, other, meta["uid"])
    elif policy == "Foreground":
        store.update(kind, namespace, name, hold)
    if kind is PODS:
        return pods.delete_pod(store, namespace, name, grace)
    return store.delete(kind, namespace, name)


def collect(store: Store) -> None:
    """One look at who has lost whom."""
    everything = list(store.everything())
    living = {thing["metadata"]["uid"] for _, thing in everything}
    leaving = {
        thing["metadata"]["uid"]: (kind, thing)
        for kind, thing in everything
        if pods.is_deleting(thing) and FOREGROUND in thing["metadata"].get("finalizers", [])
    }
    blocked = set()
    for kind, thing in everything:
        owners = {owner["uid"] for owner in thing["metadata"].get("ownerReferences", [])}
        if owners and (owners.isdisjoint(living) or owners & leaving.keys()):
            blocked |= {
                owner["uid"] for owner in thing["metadata"]["ownerReferences"]
                if owner.get("blockOwnerDeletion")
            }  # fmt: skip
            if not pods.is_deleting(thing):
                store_delete(store, kind, thing)
    for uid, (kind, thing) in leaving.items():
        if uid not in blocked:
            meta = thing["metadata"]
            store.update(
                kind, meta["namespace"], meta["name"], lambda t: pods.release(t, FOREGROUND)
            )


def store_delete(store: Store, kind: Kind, thing: Json) -> None:
    meta = thing["metadata"]
    if store.find(kind, meta["namespace"], meta["name"]):
        delete(store, kind, thing, "Background", None)


def hold(thing: Json) -> None:
    held = thing["metadata"].setdefault("finalizers", [])
    if FOREGROUND not in held:
        held.append(FOREGROUND)


def disown(store: Store, kind: Kind, thing: Json, uid: str) -> None:
    meta = thing["metadata"]
    if all(owner["uid"] != uid for owner in meta.get("ownerReferences", [])):
        return

    def change(other: Json) -> None:
        owners = other["metadata"]["ownerReferences"]
        other["metadata"]["ownerReferences"] = [o for o in owners if o["uid"] != uid]

    store.update(kind, meta["namespace"], meta["name"], change)
