"""What is in a container, and what goes wrong with pods, by itself or because it is ordered."""

from __future__ import annotations

import json
import threading
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from tests.doubles.kubernetes.cluster import Cluster
from tests.doubles.kubernetes.samples import Clients, disruption, job, rule, service

SLEEP = "import time; print('up'); time.sleep(60)"


def start(cluster: Cluster, body: dict[str, Any]) -> Clients:
    clients = Clients(cluster)
    clients.batch.create_namespaced_job("default", body)
    return clients


def first(cluster: Cluster) -> dict[str, Any]:
    return cluster.pods("flights")[0]


def state(cluster: Cluster) -> Any:
    statuses = (
        first(cluster)["status"].get("containerStatuses") if cluster.pods("flights") else None
    )
    return statuses[0]["state"] if statuses else {}


def waiting(cluster: Cluster, reason: str) -> str:
    """Waits for a container to wait for `reason`, and returns the message."""
    here = lambda: state(cluster).get("waiting", {}).get("reason") == reason  # noqa: E731
    cluster.wait(here, 20, reason)
    message: str = state(cluster)["waiting"].get("message", "")
    return message


def test_a_container_has_what_its_pod_says(tmp_path: Path) -> None:
    code = """
import json, os
def can_write(path):
    try: open(path, 'w'); return True
    except OSError: return False
print(json.dumps({
    'env': {k: os.environ.get(k) for k in ('NAME', 'KEY', 'JOINED', 'EVERYWHERE', 'JOB_COMPLETION_INDEX')},
    'user': [os.getuid(), os.getgid(), 3000 in os.getgroups()],
    'writes': [can_write(p) for p in ('/x', '/tmp/x', '/data/x', '/fixed/x')],
    'memory': int(open('/sys/fs/cgroup/memory/memory.limit_in_bytes').read()) if os.path.exists('/sys/fs/cgroup/memory/memory.limit_in_bytes') else int(open('/sys/fs/cgroup/memory.max').read()),
    'cwd': os.getcwd(),
}))
open('/dev/termination-log', 'w').write('last word')
"""
    tmp_path.chmod(0o777)
    field = {"fieldRef": {"fieldPath": "metadata.name"}}
    key = {"secretKeyRef": {"name": "minio", "key": "secretkey"}}
    container = {
        "env": [
            {"name": "NAME", "valueFrom": field}, {"name": "KEY", "valueFrom": key},
            {"name": "JOINED", "value": "$(KEY)/$(NOT)/$$(KEY)"},
        ],
        "workingDir": "/tmp",
        "resources": {"limits": {"memory": "64Mi", "cpu": "500m"}},
        "securityContext": {"readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}, "allowPrivilegeEscalation": False},
        "volumeMounts": [
            {"name": "tmp", "mountPath": "/tmp"}, {"name": "data", "mountPath": "/data"},
            {"name": "data", "mountPath": "/fixed", "readOnly": True},
        ],
    }  # fmt: skip
    pod = {
        "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "runAsGroup": 2000, "fsGroup": 3000},
        "volumes": [
            {"name": "tmp", "emptyDir": {"sizeLimit": "16Mi"}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "claim"}},
        ],
    }  # fmt: skip
    around: dict[str, Any] = {
        "volumes": {"claim": str(tmp_path)},
        "env": {"EVERYWHERE": "yes"},
        "secrets": {"minio": {"secretkey": "s"}},
    }
    with Cluster(**around) as cluster:
        clients = start(cluster, job(code, container=container, pod=pod))
        assert cluster.finished("flights") == "Complete"
        name = first(cluster)["metadata"]["name"]
        answer = clients.core.read_namespaced_pod_log(
            name, "default", container="trainer", _preload_content=False
        )
        assert json.loads(answer.data) == {
            "env": {"NAME": name, "KEY": "s", "JOINED": "s/$(NOT)/$(KEY)", "EVERYWHERE": "yes", "JOB_COMPLETION_INDEX": "0"},
            "user": [1000, 2000, True],
            "writes": [False, True, True, False],
            "memory": 64 * 2**20,
            "cwd": "/tmp",
        }  # fmt: skip
        assert state(cluster)["terminated"] | {"startedAt": "", "finishedAt": ""} == {
            "exitCode": 0, "reason": "Completed", "message": "last word", "startedAt": "", "finishedAt": "",
        }  # fmt: skip
        assert (tmp_path / "x").exists()


def test_a_pod_reaches_a_server_of_this_machine() -> None:
    with HTTPServer(("0.0.0.0", 0), SimpleHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        code = (
            f"import socket; socket.create_connection(('minio.kubeflow', {server.server_port}), 5)"
        )
        with Cluster(hosts={"minio.kubeflow": "gateway"}) as cluster:
            start(cluster, job(code))
            assert cluster.finished("flights") == "Complete"
        server.shutdown()


def test_a_log_is_followed_to_the_end(cluster: Cluster) -> None:
    code = "import sys,time\nfor n in range(3): print(n); print('e', n, file=sys.stderr); time.sleep(0.3)"
    core = start(cluster, job(code)).core
    name = cluster.running("flights", 0)
    followed = core.read_namespaced_pod_log(name, "default", follow=True, _preload_content=False)
    assert sorted(b"".join(followed.stream()).split(b"\n")) == [
        b"",
        b"0",
        b"1",
        b"2",
        b"e 0",
        b"e 1",
        b"e 2",
    ]
    cluster.finished("flights")
    assert len(core.read_namespaced_pod_log(name, "default", tail_lines=2).splitlines()) == 2
    with pytest.raises(client.ApiException, match="400"):
        core.read_namespaced_pod_log(name, "default", container="other")


def test_a_followed_log_can_be_cut(cluster: Cluster) -> None:
    core = start(cluster, job(SLEEP)).core
    name = cluster.running("flights", 0)
    followed = core.read_namespaced_pod_log(
        name, "default", follow=True, _preload_content=False
    ).stream()
    assert next(followed) == b"up\n"
    cluster.faults.cut_streams()
    assert list(followed) == []


def test_a_pod_that_no_node_takes(cluster: Cluster) -> None:
    cluster.faults.unschedulable("flights", 1, "0/3 nodes are available: 3 Insufficient cpu.")
    core = start(cluster, job("", workers=2)).core
    cluster.wait(
        lambda: any(p["status"]["phase"] == "Succeeded" for p in cluster.pods("flights", 0))
    )
    (pod,) = core.list_namespaced_pod("default", field_selector="status.phase=Pending").items
    (condition,) = pod.status.conditions
    assert (condition.type, condition.status, condition.reason) == (
        "PodScheduled",
        "False",
        "Unschedulable",
    )
    (event,) = core.list_namespaced_event(
        "default", field_selector=f"involvedObject.name={pod.metadata.name}"
    ).items
    assert (event.reason, event.message) == (
        "FailedScheduling",
        "0/3 nodes are available: 3 Insufficient cpu.",
    )
    assert core.read_namespaced_pod_log(pod.metadata.name, "default") == ""
    cluster.faults.lift()
    assert cluster.finished("flights") == "Complete"


@pytest.mark.parametrize(
    ("pod", "container", "words"),
    [
        ({}, {"resources": {"limits": {"nvidia.com/gpu": "1"}}}, "1 Insufficient nvidia.com/gpu"),
        ({"nodeSelector": {"gpu": "a100"}}, {}, "didn't match Pod's node affinity/selector"),
        ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "no"}}]}, {}, 'persistentvolumeclaim "no" not found'),
    ],
)  # fmt: skip
def test_what_no_node_has(cluster: Cluster, pod: Any, container: Any, words: str) -> None:
    start(cluster, job("", pod=pod, container=container))
    cluster.wait(lambda: cluster.pods("flights") and first(cluster)["status"]["conditions"])
    assert words in first(cluster)["status"]["conditions"][0]["message"]


def test_an_image_that_cannot_be_pulled(cluster: Cluster) -> None:
    clients = start(cluster, job("", container={"image": "localhost:1/castell/none:1"}))
    assert "connection refused" in waiting(cluster, "ErrImagePull")
    assert "Back-off pulling image" in waiting(cluster, "ImagePullBackOff")
    name = first(cluster)["metadata"]["name"]
    events = clients.core.list_namespaced_event(
        "default", field_selector=f"involvedObject.name={name}"
    ).items
    assert {"Pulling", "Failed", "BackOff"} <= {event.reason for event in events}
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
        ({}, {"securityContext": {"runAsNonRoot": True}}, "CreateContainerConfigError", "will run as root"),
        ({"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "no", "key": "k"}}}]}, {}, "CreateContainerConfigError", 'secret "no" not found'),
        ({"image": "none:1", "imagePullPolicy": "Never"}, {}, "ErrImageNeverPull", "pull policy of Never"),
    ],
)  # fmt: skip
def test_a_container_that_is_not_made(
    cluster: Cluster, container: Any, pod: Any, reason: str, words: str
) -> None:
    start(cluster, job("", container=container, pod=pod))
    assert words in waiting(cluster, reason)


def test_a_command_that_is_not_there(cluster: Cluster) -> None:
    start(cluster, job("", container={"command": ["/no/such"]}))
    assert cluster.finished("flights") == "BackoffLimitExceeded"
    end = state(cluster)["terminated"]
    assert (end["exitCode"], end["reason"], "/no/such" in end["message"]) == (
        128,
        "StartError",
        True,
    )


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
    code = "import signal,sys,time; signal.signal(15, lambda *a: sys.exit(143)); print('up'); time.sleep(60)"
    body = job(code, podFailurePolicy={"rules": [disruption(), rule("FailJob", 143)]})
    core = start(cluster, body).core
    name = cluster.running("flights", 0)
    cluster.wait(lambda: core.read_namespaced_pod_log(name, "default"))
    version = core.list_namespaced_pod("default").metadata.resource_version
    cluster.faults.disrupt(name)
    again = cluster.running("flights", 0)
    assert again != name
    answer = core.list_namespaced_pod(
        "default", watch=True, resource_version=version, timeout_seconds=1, _preload_content=False
    )
    events = [json.loads(line) for line in answer.data.splitlines()]
    mine = [event for event in events if event["object"]["metadata"]["name"] == name]
    last = mine[-1]["object"]["status"]
    assert mine[-1]["type"] == "DELETED"
    assert last["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 143
    assert [c["reason"] for c in last["conditions"] if c["type"] == "DisruptionTarget"] == [
        "EvictionByEvictionAPI"
    ]
    status = Clients(cluster).batch.read_namespaced_job("flights", "default").status
    assert (status.failed, status.conditions) == (None, None)


def test_a_pod_loses_its_network_and_runs_on(cluster: Cluster) -> None:
    code = (
        "import socket,time\n"
        "while True:\n"
        " try: socket.getaddrinfo('flights-0.flights', 1); print('seen')\n"
        " except OSError: print('lost'); break\n"
        " time.sleep(0.1)\n"
    )
    Clients(cluster).core.create_namespaced_service("default", service())
    core = start(cluster, job(code)).core
    name = cluster.running("flights", 0)
    cluster.wait(lambda: core.read_namespaced_pod_log(name, "default"))
    cluster.faults.disconnect(name)
    assert cluster.finished("flights") == "Complete"


def test_nothing_is_left_behind() -> None:
    with pytest.raises(KeyError), Cluster() as cluster:
        start(cluster, job(SLEEP, workers=2))
        cluster.running("flights", 1)
        raise KeyError
    mine = f"label=dev.castell.double={cluster.engine.run_id}"
    assert cluster.engine.call("ps", "--all", "--quiet", "--filter", mine) == ""
    assert cluster.engine.call("network", "ls", "--quiet", "--filter", mine) == ""
