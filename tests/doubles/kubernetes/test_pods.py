"""What is in a container, what it says, and that nothing of it stays."""

from __future__ import annotations

import json
import threading
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from tests.doubles.kubernetes.cluster import Cluster
from tests.doubles.kubernetes.engine import LABEL
from tests.doubles.kubernetes.samples import SLEEP, first, job, start, state

# What a container sees of itself, as JSON.
INSIDE = """
import json, os, pathlib
def can_write(path):
    try:
        pathlib.Path(path).touch()
    except OSError:
        return False
    return True
names = ('NAME', 'KEY', 'JOINED', 'EVERYWHERE', 'JOB_COMPLETION_INDEX')
limits = ('memory/memory.limit_in_bytes', 'memory.max')
(limit, *_) = [p for p in map(pathlib.Path('/sys/fs/cgroup').joinpath, limits) if p.exists()]
print(json.dumps({
    'env': [os.environ.get(name) for name in names],
    'user': [os.getuid(), os.getgid(), 3000 in os.getgroups()],
    'writes': [can_write(path) for path in ('/x', '/tmp/x', '/data/x', '/fixed/x')],
    'memory': limit.read_text().strip(),
    'cwd': os.getcwd(),
}))
pathlib.Path('/dev/termination-log').write_text('last word')
"""
TALK = """
import sys, time
for n in range(3):
    print(n)
    print('e', n, file=sys.stderr)
    time.sleep(0.2)
"""


def test_a_container_has_what_its_pod_says(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    container = {
        "workingDir": "/tmp",
        "env": [
            {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "minio", "key": "secret"}}},
            {"name": "JOINED", "value": "$(KEY)/$(NOT)/$$(KEY)"},
        ],
        "resources": {"limits": {"memory": "64Mi", "cpu": "500m"}},
        "securityContext": {
            "readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "tmp", "mountPath": "/tmp"}, {"name": "data", "mountPath": "/data"},
            {"name": "data", "mountPath": "/fixed", "readOnly": True},
        ],
    }  # fmt: skip
    user = {"runAsNonRoot": True, "runAsUser": 1000, "runAsGroup": 2000, "fsGroup": 3000}
    volumes = [
        {"name": "tmp", "emptyDir": {"sizeLimit": "16Mi"}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "claim"}},
    ]
    around: dict[str, Any] = {"env": {"EVERYWHERE": "yes"}, "secrets": {"minio": {"secret": "s"}}}
    with Cluster(volumes={"claim": str(tmp_path)}, **around) as cluster:
        pod = {"securityContext": user, "volumes": volumes}
        core = start(cluster, job(INSIDE, container=container, pod=pod)).core
        assert cluster.finished("flights") == "Complete"
        name = first(cluster)["metadata"]["name"]
        answer = core.read_namespaced_pod_log(name, "default", _preload_content=False)
        assert json.loads(answer.data) == {
            "env": [name, "s", "s/$(NOT)/$(KEY)", "yes", "0"],
            "user": [1000, 2000, True],
            "writes": [False, True, True, False],
            "memory": str(64 * 2**20),
            "cwd": "/tmp",
        }
        end = state(cluster)["terminated"]
        assert (end["exitCode"], end["reason"], end["message"]) == (0, "Completed", "last word")
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
    core = start(cluster, job(TALK)).core
    name = cluster.running("flights", 0)
    log = core.read_namespaced_pod_log(name, "default", follow=True, _preload_content=False)
    assert sorted(b"".join(log.stream()).split()) == sorted(b"0 1 2 e e e 0 1 2".split())
    cluster.finished("flights")
    assert len(core.read_namespaced_pod_log(name, "default", tail_lines=2).splitlines()) == 2
    with pytest.raises(client.ApiException, match="400"):
        core.read_namespaced_pod_log(name, "default", container="other")


def test_a_followed_log_can_be_cut(cluster: Cluster) -> None:
    core = start(cluster, job(SLEEP)).core
    name = cluster.running("flights", 0)
    log = core.read_namespaced_pod_log(name, "default", follow=True, _preload_content=False)
    lines = log.stream()
    assert next(lines) == b"up\n"
    cluster.faults.cut_streams()
    assert list(lines) == []


def test_a_command_that_is_not_there(cluster: Cluster) -> None:
    start(cluster, job("", container={"command": ["/no/such"]}))
    assert cluster.finished("flights") == "BackoffLimitExceeded"
    end = state(cluster)["terminated"]
    assert (end["exitCode"], end["reason"], "/no/such" in end["message"]) == (
        128,
        "StartError",
        True,
    )


def test_nothing_is_left_behind() -> None:
    with pytest.raises(KeyError), Cluster() as cluster:
        fail_while_running(cluster)
    mine = f"label={LABEL}={cluster.engine.run_id}"
    assert cluster.engine.call("ps", "--all", "--quiet", "--filter", mine) == ""
    assert cluster.engine.call("network", "ls", "--quiet", "--filter", mine) == ""


def fail_while_running(cluster: Cluster) -> None:
    start(cluster, job(SLEEP, workers=2))
    cluster.running("flights", 1)
    raise KeyError
