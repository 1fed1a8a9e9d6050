"""What goes wrong with pods: by themselves, or because it is ordered."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes import client, watch

from tests.doubles.kubernetes.cluster import Cluster
from tests.doubles.kubernetes.pods import is_terminal
from tests.doubles.kubernetes.samples import (
    SLEEP,
    Clients,
    disruption,
    first,
    job,
    rule,
    start,
    state,
)

LOOK = """
import socket, time
while len(socket.if_nameindex()) > 1:
    print('seen')
    time.sleep(0.1)
"""


def events(clients: Clients, pod: str) -> list[Any]:
    selector = f"involvedObject.name={pod}"
    found: list[Any] = clients.core.list_namespaced_event("default", field_selector=selector).items
    return found


def waiting(cluster: Cluster, reason: str) -> str:
    """Waits for a container to wait for `reason`, and returns the message."""

    def here() -> Any:
        found = state(cluster).get("waiting", {})
        return found if found.get("reason") == reason else None

    message: str = cluster.wait(here, 20, reason).get("message", "")
    return message


def test_a_pod_that_no_node_takes(cluster: Cluster) -> None:
    why = "0/3 nodes are available: 3 Insufficient cpu."
    cluster.faults.unschedulable("flights", 1, why)
    clients = start(cluster, job("", workers=2))
    cluster.wait(lambda: [p for p in cluster.pods("flights", 0) if is_terminal(p)])
    pending = "status.phase=Pending"
    (pod,) = clients.core.list_namespaced_pod("default", field_selector=pending).items
    (found,) = pod.status.conditions
    assert (found.type, found.status, found.reason, found.message) == (
        "PodScheduled", "False", "Unschedulable", why,
    )  # fmt: skip
    (event,) = events(clients, pod.metadata.name)
    assert (event.reason, event.message) == ("FailedScheduling", why)
    assert clients.core.read_namespaced_pod_log(pod.metadata.name, "default") == ""
    cluster.faults.lift()
    assert cluster.finished("flights") == "Complete"


NO_CLAIM = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "no"}}]}
GPU = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
NO_SECRET = {"name": "A", "valueFrom": {"secretKeyRef": {"name": "no", "key": "k"}}}
NOT_ROOT = {"securityContext": {"runAsNonRoot": True}}


@pytest.mark.parametrize(
    ("pod", "container", "words"),
    [
        ({}, GPU, "1 Insufficient nvidia.com/gpu"),
        ({"nodeSelector": {"gpu": "a100"}}, {}, "didn't match Pod's node affinity/selector"),
        (NO_CLAIM, {}, 'persistentvolumeclaim "no" not found'),
    ],
)
def test_what_no_node_has(cluster: Cluster, pod: Any, container: Any, words: str) -> None:
    start(cluster, job("", pod=pod, container=container))
    cluster.wait(lambda: cluster.pods("flights") and first(cluster)["status"]["conditions"])
    assert words in first(cluster)["status"]["conditions"][0]["message"]


def test_an_image_that_cannot_be_pulled(cluster: Cluster) -> None:
    clients = start(cluster, job("", container={"image": "localhost:1/castell/none:1"}))
    assert "connection refused" in waiting(cluster, "ErrImagePull")
    assert "Back-off pulling image" in waiting(cluster, "ImagePullBackOff")
    name = first(cluster)["metadata"]["name"]
    assert {"Pulling", "Failed", "BackOff"} <= {event.reason for event in events(clients, name)}
    with pytest.raises(client.ApiException, match="trying and failing to pull image"):
        clients.core.read_namespaced_pod_log(name, "default")
    clients.batch.delete_namespaced_job("flights", "default", propagation_policy="Foreground")
    cluster.wait(lambda: not clients.batch.list_namespaced_job("default").items, 10)


def test_a_pull_can_be_made_to_fail(cluster: Cluster) -> None:
    cluster.faults.image_pull_back_off("flights")
    start(cluster, job(""))
    assert "pull access denied" in waiting(cluster, "ImagePullBackOff")
    cluster.faults.lift()
    assert cluster.finished("flights") == "Complete"


@pytest.mark.parametrize(
    ("container", "pod", "reason", "words"),
    [
        ({}, NOT_ROOT, "CreateContainerConfigError", "image will run as root"),
        ({"env": [NO_SECRET]}, {}, "CreateContainerConfigError", 'secret "no" not found'),
        ({"image": "a:1", "imagePullPolicy": "Never"}, {}, "ErrImageNeverPull", "policy of Never"),
        ({"image": "No:Good:1"}, {}, "InvalidImageName", "invalid reference format"),
    ],
)
def test_a_container_that_is_not_made(
    cluster: Cluster, container: Any, pod: Any, reason: str, words: str
) -> None:
    start(cluster, job("", container=container, pod=pod))
    assert words in waiting(cluster, reason)


def test_memory_beyond_the_limit(cluster: Cluster) -> None:
    limits = {"resources": {"limits": {"memory": "32Mi"}}}
    start(cluster, job("import time; x = b'x' * 2**27; time.sleep(60)", container=limits))
    assert cluster.finished("flights") == "BackoffLimitExceeded"
    end = state(cluster)["terminated"]
    assert (end["exitCode"], end["reason"]) == (137, "OOMKilled")


def test_a_pod_is_killed(cluster: Cluster) -> None:
    start(cluster, job(SLEEP, container={"terminationMessagePolicy": "FallbackToLogsOnError"}))
    name = cluster.running("flights", 0)
    cluster.wait(lambda: cluster.engine.call("logs", cluster.engine.container("default", name)))
    cluster.faults.kill(name)
    assert cluster.finished("flights") == "BackoffLimitExceeded"
    end = state(cluster)["terminated"]
    assert (end["exitCode"], end["reason"], end["message"]) == (137, "Error", "up\n")


def test_a_pod_is_killed_as_for_its_memory(cluster: Cluster) -> None:
    start(cluster, job(SLEEP))
    cluster.faults.oom_kill(cluster.running("flights", 0))
    cluster.finished("flights")
    assert state(cluster)["terminated"]["reason"] == "OOMKilled"


def test_a_disrupted_pod_stops_in_grace_and_comes_again(cluster: Cluster) -> None:
    policy = {"rules": [disruption(), rule("FailJob", 143)]}
    clients = start(cluster, job(SLEEP, podFailurePolicy=policy))
    core, name = clients.core, cluster.running("flights", 0)
    cluster.wait(lambda: core.read_namespaced_pod_log(name, "default"))
    version = core.list_namespaced_pod("default").metadata.resource_version
    cluster.faults.disrupt(name)
    assert cluster.running("flights", 0) != name
    seen = watch.Watch().stream(
        core.list_namespaced_pod, "default", resource_version=version, timeout_seconds=1
    )
    *_, last = [event for event in seen if event["object"].metadata.name == name]
    status = last["object"].status
    assert (last["type"], status.phase) == ("DELETED", "Failed")
    assert status.container_statuses[0].state.terminated.exit_code == 143
    (target,) = [c for c in status.conditions if c.type == "DisruptionTarget"]
    assert (target.status, target.reason) == ("True", "EvictionByEvictionAPI")
    status = clients.batch.read_namespaced_job("flights", "default").status
    assert (status.failed, status.conditions) == (None, None)


def test_a_pod_loses_its_network_and_runs_on(cluster: Cluster) -> None:
    core = start(cluster, job(LOOK)).core
    name = cluster.running("flights", 0)
    cluster.wait(lambda: core.read_namespaced_pod_log(name, "default"))
    cluster.faults.disconnect(name)
    assert cluster.finished("flights") == "Complete"
