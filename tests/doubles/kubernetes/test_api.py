"""What the API server answers, as the real client sees it. Jobs are suspended: nothing runs."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from kubernetes import client, watch

from tests.doubles.kubernetes.cluster import Cluster
from tests.doubles.kubernetes.samples import Clients, disruption, job, rule, service


def sleeping(**changes: Any) -> dict[str, Any]:
    return job("", suspend=True, **changes)


def refusal(call: Any, *args: Any, **options: Any) -> client.ApiException:
    with pytest.raises(client.ApiException) as caught:
        call(*args, **options)
    return caught.value


def test_a_job_can_be_made_once(cluster: Cluster) -> None:
    batch = Clients(cluster).batch
    made = batch.create_namespaced_job("default", sleeping())
    assert (made.spec.backoff_limit, made.metadata.uid) == (0, made.spec.selector.match_labels["batch.kubernetes.io/controller-uid"])
    again = refusal(batch.create_namespaced_job, "default", sleeping())
    assert (again.status, '"reason": "AlreadyExists"' in again.body) == (409, True)
    assert 'jobs.batch \\"flights\\" already exists' in again.body
    assert batch.create_namespaced_job("other", sleeping()).metadata.namespace == "other"
    assert refusal(batch.read_namespaced_job, "none", "default").status == 404


def test_what_is_wrong_with_a_job_is_said(cluster: Cluster) -> None:
    batch = Clients(cluster).batch
    wrong = [
        (sleeping(podFailurePolicy={"rules": [rule("FailJob", 3, 2)]}), "values: Invalid value: must be ordered"),
        (sleeping(podFailurePolicy={"rules": [rule("FailIndex", 3)]}), "requires the backoffLimitPerIndex"),
        (sleeping(podFailurePolicy={"rules": [rule("Ignore", 0)]}), "must not be 0 for the In operator"),
        (sleeping(pod={"restartPolicy": "Always"}), 'supported values: "OnFailure", "Never"'),
        (sleeping(maxFailedIndexes=1), "backoffLimitPerIndex: Required value"),
        (sleeping(name="x" * 62), "invalid DNS label"),
        (sleeping(name="Flights"), "RFC 1123"),
        (sleeping(container={"volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}]}), "Not found"),
    ]  # fmt: skip
    for body, words in wrong:
        refused = refusal(batch.create_namespaced_job, "default", body)
        assert (refused.status, words in refused.body) == (422, True), refused.body
    assert refusal(Clients(cluster).core.create_namespaced_service, "default", service("1st")).status == 422


def test_what_the_double_cannot_do_is_refused(cluster: Cluster) -> None:
    batch = Clients(cluster).batch
    many = sleeping(pod={"initContainers": [{"name": "first", "image": "x"}]})
    assert refusal(batch.create_namespaced_job, "default", many).status == 501
    assert refusal(batch.create_namespaced_job, "default", sleeping(completionMode="NonIndexed")).status == 501


def test_a_right_can_be_denied(cluster: Cluster) -> None:
    cluster.denied.add(("create", "jobs"))
    refused = refusal(Clients(cluster).batch.create_namespaced_job, "default", sleeping())
    assert (refused.status, 'cannot create resource \\"jobs\\"' in refused.body) == (403, True)
    cluster.denied.clear()
    Clients(cluster).batch.create_namespaced_job("default", sleeping())


def test_lists_are_selected_by_labels_and_fields(cluster: Cluster) -> None:
    clients = Clients(cluster)
    for name in ("a", "b"):
        body = sleeping(name=name)
        body["metadata"]["labels"] = {"team": name}
        clients.batch.create_namespaced_job("default", body)

    def names(**selectors: str) -> list[str]:
        found = clients.batch.list_namespaced_job("default", **selectors).items
        return [item.metadata.name for item in found]

    assert names(label_selector="team=a") == ["a"]
    assert names(label_selector="team in (a, b),team!=a") == ["b"]
    assert names(label_selector="!team") == []
    assert names(field_selector="metadata.name=b") == ["b"]
    assert refusal(names, field_selector="spec.parallelism=1").status == 400
    events = clients.core.list_namespaced_event("default", field_selector="involvedObject.name=a")
    cluster.wait(lambda: cluster.store.list(cluster_events()), what="an event")
    events = clients.core.list_namespaced_event("default", field_selector="involvedObject.name=a")
    assert [event.reason for event in events.items] == ["Suspended"]


def cluster_events() -> Any:
    from tests.doubles.kubernetes.store import EVENTS

    return EVENTS


def test_a_watch_goes_on_where_a_list_ended(cluster: Cluster) -> None:
    clients = Clients(cluster)
    clients.core.create_namespaced_service("default", service("before"))
    version = clients.core.list_namespaced_service("default").metadata.resource_version
    seen: list[tuple[str, str]] = []

    def look() -> None:
        stream = watch.Watch().stream(
            Clients(cluster).core.list_namespaced_service, "default", resource_version=version, timeout_seconds=20
        )  # fmt: skip
        for event in stream:
            seen.append((event["type"], event["object"].metadata.name))
            if event["type"] == "DELETED":
                return

    thread = threading.Thread(target=look)
    thread.start()
    clients.core.create_namespaced_service("default", service())
    clients.core.patch_namespaced_service("flights", "default", {"metadata": {"labels": {"a": "b"}}})
    clients.core.delete_namespaced_service("flights", "default")
    thread.join(timeout=10)
    assert seen == [("ADDED", "flights"), ("MODIFIED", "flights"), ("DELETED", "flights")]


def test_a_watch_ends_with_its_time_or_when_streams_are_cut(cluster: Cluster) -> None:
    core = Clients(cluster).core
    core.create_namespaced_service("default", service())
    one = watch.Watch().stream(core.list_namespaced_service, "default", timeout_seconds=1)
    assert [event["type"] for event in one] == ["ADDED"]
    threading.Timer(0.5, cluster.faults.cut_streams).start()
    answer = core.list_namespaced_service("default", watch=True, _preload_content=False)
    assert len(list(answer.stream())) == 1


def test_changes_by_patch_and_by_replacement(cluster: Cluster) -> None:
    batch = Clients(cluster).batch
    made = batch.create_namespaced_job("default", sleeping(activeDeadlineSeconds=60))
    assert batch.patch_namespaced_job("flights", "default", {"spec": {"parallelism": 0, "suspend": False}}).spec.suspend is False
    stale = refusal(batch.replace_namespaced_job, "flights", "default", made)
    assert (stale.status, "object has been modified" in stale.body) == (409, True)
    fixed = refusal(batch.patch_namespaced_job, "flights", "default", {"spec": {"completions": 5}})
    assert (fixed.status, "field is immutable" in fixed.body) == (422, True)


def test_what_an_owner_leaves_behind_is_removed(cluster: Cluster) -> None:
    clients = Clients(cluster)
    step = cluster.add_pod("step")["metadata"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "step", "uid": step["uid"]}
    body = sleeping()
    body["metadata"]["ownerReferences"] = [owner]
    uid = clients.batch.create_namespaced_job("default", body).metadata.uid
    below = {"apiVersion": "batch/v1", "kind": "Job", "name": "flights", "uid": uid}
    clients.core.create_namespaced_service("default", service(ownerReferences=[below]))
    policy = {"metadata": {"name": "flights", "ownerReferences": [below]}, "spec": {"podSelector": {}}}
    clients.network.create_namespaced_network_policy("default", policy)
    cluster.remove_pod("step")
    cluster.wait(lambda: all(kind.kind == "Event" for kind, _ in cluster.store.everything()), 10)
    # An owner that never was is like one that is gone.
    clients.core.create_namespaced_service("default", service(ownerReferences=[{**below, "uid": "0"}]))
    cluster.wait(lambda: not clients.core.list_namespaced_service("default").items, 10)


def test_version_and_discovery(cluster: Cluster) -> None:
    assert Clients(cluster).version.get_code().major == "1"
    found = Clients(cluster).batch.get_api_resources()
    assert [resource.name for resource in found.resources] == ["jobs"]
