"""What the API server answers, as the real client sees it. Jobs are suspended: nothing runs."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from kubernetes import client, watch

from tests.doubles.kubernetes.cluster import Cluster
from tests.doubles.kubernetes.samples import Clients, job, rule, service


def sleeping(**changes: Any) -> dict[str, Any]:
    return job("", suspend=True, **changes)


def policy(*rules: dict[str, Any]) -> dict[str, Any]:
    return {"podFailurePolicy": {"rules": list(rules)}}


def refusal(code: int, call: Any, *args: Any, **options: Any) -> str:
    """The message of a Status of that code."""
    with pytest.raises(client.ApiException) as caught:
        call(*args, **options)
    assert caught.value.status == code
    message: str = json.loads(caught.value.body)["message"]
    return message


def test_a_job_can_be_made_once(cluster: Cluster) -> None:
    batch = Clients(cluster).batch
    made = batch.create_namespaced_job("default", sleeping())
    controller = made.spec.selector.match_labels["batch.kubernetes.io/controller-uid"]
    assert (made.spec.backoff_limit, made.metadata.uid) == (0, controller)
    again = refusal(409, batch.create_namespaced_job, "default", sleeping())
    assert again == 'jobs.batch "flights" already exists'
    assert batch.create_namespaced_job("other", sleeping()).metadata.namespace == "other"
    refusal(404, batch.read_namespaced_job, "none", "default")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (policy(rule("FailJob", 3, 2)), "values: Invalid value: must be ordered"),
        (policy(rule("FailIndex", 3)), "requires the backoffLimitPerIndex"),
        (policy(rule("Ignore", 0)), "must not be 0 for the In operator"),
        (policy({"action": "Ignore"}), "specifying one of OnExitCodes and OnPodConditions"),
        ({"pod": {"restartPolicy": "Always"}}, 'supported values: "OnFailure", "Never"'),
        ({"maxFailedIndexes": 1}, "backoffLimitPerIndex: Required value"),
        ({"name": "x" * 62}, "invalid DNS label"),
        ({"name": "Flights"}, "RFC 1123"),
        ({"container": {"volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}]}}, "Not found"),
    ],
)
def test_what_is_wrong_with_a_job_is_said(
    cluster: Cluster, changes: dict[str, Any], words: str
) -> None:
    batch = Clients(cluster).batch
    assert words in refusal(422, batch.create_namespaced_job, "default", sleeping(**changes))


def test_a_service_begins_with_a_letter(cluster: Cluster) -> None:
    refusal(422, Clients(cluster).core.create_namespaced_service, "default", service("1st"))


def test_what_the_double_cannot_do_is_refused(cluster: Cluster) -> None:
    batch = Clients(cluster).batch
    many = sleeping(pod={"initContainers": [{"name": "first", "image": "x"}]})
    refusal(501, batch.create_namespaced_job, "default", many)
    refusal(501, batch.create_namespaced_job, "default", sleeping(completionMode="NonIndexed"))


def test_a_right_can_be_denied(cluster: Cluster) -> None:
    cluster.denied.add(("create", "jobs"))
    batch = Clients(cluster).batch
    words = refusal(403, batch.create_namespaced_job, "default", sleeping())
    assert 'cannot create resource "jobs" in API group "batch"' in words
    cluster.denied.clear()
    batch.create_namespaced_job("default", sleeping())


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
    refusal(400, names, field_selector="spec.parallelism=1")
    selector = "involvedObject.name=a"
    events = cluster.wait(
        lambda: clients.core.list_namespaced_event("default", field_selector=selector).items
    )
    assert [event.reason for event in events] == ["Suspended"]


def test_a_watch_goes_on_where_a_list_ended(cluster: Cluster) -> None:
    clients = Clients(cluster)
    clients.core.create_namespaced_service("default", service("before"))
    version = clients.core.list_namespaced_service("default").metadata.resource_version
    seen: list[tuple[str, str]] = []

    def look() -> None:
        core = Clients(cluster).core
        stream = watch.Watch().stream(
            core.list_namespaced_service, "default", resource_version=version, timeout_seconds=20
        )
        for event in stream:
            seen.append((event["type"], event["object"].metadata.name))
            if event["type"] == "DELETED":
                return

    thread = threading.Thread(target=look)
    thread.start()
    clients.core.create_namespaced_service("default", service())
    clients.core.patch_namespaced_service(
        "flights", "default", {"metadata": {"labels": {"a": "b"}}}
    )
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
    change = {"spec": {"parallelism": 0, "suspend": False}}
    assert batch.patch_namespaced_job("flights", "default", change).spec.suspend is False
    words = refusal(409, batch.replace_namespaced_job, "flights", "default", made)
    assert "object has been modified" in words
    fixed = {"spec": {"completions": 5}}
    words = refusal(422, batch.patch_namespaced_job, "flights", "default", fixed)
    assert "field is immutable" in words


def test_what_an_owner_leaves_behind_is_removed(cluster: Cluster) -> None:
    clients = Clients(cluster)
    step = cluster.add_pod("step")["metadata"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "step", "uid": step["uid"]}
    body = sleeping()
    body["metadata"]["ownerReferences"] = [owner]
    uid = clients.batch.create_namespaced_job("default", body).metadata.uid
    below = {"apiVersion": "batch/v1", "kind": "Job", "name": "flights", "uid": uid}
    clients.core.create_namespaced_service("default", service(ownerReferences=[below]))
    policy = {
        "metadata": {"name": "flights", "ownerReferences": [below]},
        "spec": {"podSelector": {}},
    }
    clients.network.create_namespaced_network_policy("default", policy)
    cluster.remove_pod("step")
    cluster.wait(lambda: all(kind.kind == "Event" for kind, _ in cluster.store.everything()), 10)
    # An owner that never was is like one that is gone.
    below = {**below, "uid": "0"}
    clients.core.create_namespaced_service("default", service(ownerReferences=[below]))
    cluster.wait(lambda: not clients.core.list_namespaced_service("default").items, 10)


def test_version_and_discovery(cluster: Cluster) -> None:
    assert Clients(cluster).version.get_code().major == "1"
    found = Clients(cluster).batch.get_api_resources()
    assert [resource.name for resource in found.resources] == ["jobs"]
