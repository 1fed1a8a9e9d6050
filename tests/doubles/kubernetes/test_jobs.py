"""The Job controller: restarts, limits, podFailurePolicy, ends. Pods are real containers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.doubles.kubernetes.backoff import Record
from tests.doubles.kubernetes.cluster import Cluster
from tests.doubles.kubernetes.policy import judge
from tests.doubles.kubernetes.samples import SLEEP, Clients, disruption, job, rule, service
from tests.doubles.kubernetes.timing import Timing

# Leaves with 138 the first time, and with 0 when a directory of its name is there.
ONCE = """
import os, sys
mark = '/memory/' + os.uname().nodename
sys.exit(0 if os.path.exists(mark) else os.mkdir(mark) or 138)
"""
# Worker i leaves with the i-th code.
CODES = """
import os, sys
sys.exit(int(os.environ['CODES'].split()[int(os.environ['JOB_COMPLETION_INDEX'])]))
"""
# Worker 0 waits for worker 1 at its name.
MEET = """
import os, socket, time
if os.environ['JOB_COMPLETION_INDEX'] == '1':
    socket.create_server(('', 2222)).accept()[0].send(socket.gethostname().encode())
else:
    end = time.time() + 20
    while time.time() < end:
        try:
            place = ('flights-1.flights.default.svc.cluster.local', 2222)
            print(socket.create_connection(place).recv(99))
            break
        except OSError:
            time.sleep(0.1)
"""


def codes(*wanted: int, **spec: Any) -> dict[str, Any]:
    env = [{"name": "CODES", "value": " ".join(map(str, wanted))}]
    return job(CODES, workers=len(wanted), container={"env": env}, **spec)


def status(cluster: Cluster) -> Any:
    return Clients(cluster).batch.read_namespaced_job("flights", "default").status


def test_workers_find_each_other_by_name(cluster: Cluster) -> None:
    clients = Clients(cluster)
    body = job(MEET, workers=2, pod={"subdomain": "flights"})
    clients.batch.create_namespaced_job("default", body)
    # As in a step that lets the Job own the Service.
    clients.core.create_namespaced_service("default", service())
    assert cluster.finished("flights") == "Complete"
    (pod,) = cluster.pods("flights", 0)
    name = pod["metadata"]["name"]
    assert "flights-1" in clients.core.read_namespaced_pod_log(name, "default")
    done = status(cluster)
    assert (done.succeeded, done.completed_indexes) == (2, "0,1")
    assert (done.failed, done.active) == (None, None)
    listed = clients.core.list_namespaced_pod("default", label_selector="job-name=flights")
    meta = listed.items[1].metadata
    assert meta.labels["batch.kubernetes.io/job-completion-index"] == "1"
    assert (meta.owner_references[0].kind, meta.name[:10]) == ("Job", "flights-1-")


def test_without_its_service_a_pod_has_no_name() -> None:
    look = "import socket; socket.getaddrinfo('flights-0.flights', 1)"
    with Cluster(timing=Timing(service_wait=0.2)) as cluster:
        body = job(look, pod={"subdomain": "flights"})
        Clients(cluster).batch.create_namespaced_job("default", body)
        assert cluster.finished("flights") == "BackoffLimitExceeded"


def test_an_ignored_failure_is_tried_again_and_counts_for_nothing(tmp_path: Path) -> None:
    claim = {"name": "memory", "persistentVolumeClaim": {"claimName": "memory"}}
    mounts = [{"name": "memory", "mountPath": "/memory"}]
    with Cluster(volumes={"memory": str(tmp_path)}) as cluster:
        body = job(
            ONCE, workers=2, container={"volumeMounts": mounts}, pod={"volumes": [claim]},
            podFailurePolicy={"rules": [rule("FailJob", 1, 2, 3), rule("Ignore", 138, 143)]},
        )  # fmt: skip
        Clients(cluster).batch.create_namespaced_job("default", body)
        assert cluster.finished("flights") == "Complete"
        assert status(cluster).failed is None
        assert [len(cluster.pods("flights", index)) for index in (0, 1)] == [2, 2]


def test_a_mistake_fails_the_job_at_once_and_stops_the_others(cluster: Cluster) -> None:
    code = "import os,sys,time; os.environ['JOB_COMPLETION_INDEX'] == '1' and sys.exit(2); "
    policy = {"rules": [rule("FailJob", 2, 3)]}
    body = job(code + "time.sleep(60)", workers=2, backoffLimit=5, podFailurePolicy=policy)
    Clients(cluster).batch.create_namespaced_job("default", body)
    assert cluster.finished("flights") == "PodFailurePolicy"
    (failed,) = cluster.pods("flights")
    end = status(cluster)
    assert [condition.type for condition in end.conditions] == ["FailureTarget", "Failed"]
    name = failed["metadata"]["name"]
    assert end.conditions[1].message == (
        f"Container trainer for pod default/{name} failed with exit code 2 "
        "matching FailJob rule at index 0"
    )
    assert Clients(cluster).core.read_namespaced_pod_log(name, "default") == ""


def test_failures_use_up_the_limit(cluster: Cluster) -> None:
    Clients(cluster).batch.create_namespaced_job("default", codes(1, backoffLimit=1))
    assert cluster.finished("flights") == "BackoffLimitExceeded"
    assert (status(cluster).failed, len(cluster.pods("flights"))) == (2, 2)


def test_each_index_can_have_a_limit_of_its_own(cluster: Cluster) -> None:
    policy = {"rules": [rule("FailIndex", 7)]}
    body = codes(0, 1, 7, backoffLimit=9, backoffLimitPerIndex=1, podFailurePolicy=policy)
    Clients(cluster).batch.create_namespaced_job("default", body)
    assert cluster.finished("flights") == "FailedIndexes"
    end = status(cluster)
    assert (end.completed_indexes, end.failed_indexes, end.failed) == ("0", "1,2", 3)
    second = cluster.pods("flights", 1)[1]["metadata"]["annotations"]
    assert second["batch.kubernetes.io/job-index-failure-count"] == "1"


def test_too_many_failed_indexes_end_the_job(cluster: Cluster) -> None:
    body = codes(1, backoffLimit=9, backoffLimitPerIndex=0, maxFailedIndexes=0)
    Clients(cluster).batch.create_namespaced_job("default", body)
    assert cluster.finished("flights") == "MaxFailedIndexesExceeded"


def test_the_deadline_of_a_job(cluster: Cluster) -> None:
    Clients(cluster).batch.create_namespaced_job("default", job(SLEEP, activeDeadlineSeconds=1))
    assert cluster.finished("flights") == "DeadlineExceeded"
    assert cluster.pods("flights") == []


def test_a_job_is_suspended_and_resumed(cluster: Cluster) -> None:
    batch = Clients(cluster).batch
    batch.create_namespaced_job("default", job(SLEEP))
    first = cluster.running("flights", 0)
    batch.patch_namespaced_job("flights", "default", {"spec": {"suspend": True}})
    cluster.wait(lambda: not cluster.pods("flights"))
    assert status(cluster).failed is None
    batch.patch_namespaced_job("flights", "default", {"spec": {"suspend": False}})
    assert cluster.running("flights", 0) != first


@pytest.mark.parametrize("policy", ["Background", "Foreground"])
def test_a_deleted_job_takes_its_pods_along(cluster: Cluster, policy: str) -> None:
    batch = Clients(cluster).batch
    batch.create_namespaced_job("default", job(SLEEP))
    cluster.running("flights", 0)
    batch.delete_namespaced_job("flights", "default", propagation_policy=policy)
    left = [item.metadata.name for item in batch.list_namespaced_job("default").items]
    assert left == (["flights"] if policy == "Foreground" else [])
    cluster.wait(lambda: not cluster.pods("flights"))
    cluster.wait(lambda: not batch.list_namespaced_job("default").items)


def test_a_job_deleted_without_a_word_leaves_its_pods(cluster: Cluster) -> None:
    batch = Clients(cluster).batch
    batch.create_namespaced_job("default", job(SLEEP))
    cluster.running("flights", 0)
    batch.delete_namespaced_job("flights", "default")
    cluster.wait(lambda: not cluster.pods("flights")[0]["metadata"].get("finalizers"))
    (orphan,) = cluster.pods("flights")
    assert (orphan["metadata"]["ownerReferences"], orphan["status"]["phase"]) == ([], "Running")


def test_the_first_rule_that_fits_decides() -> None:
    state = {"name": "trainer", "state": {"terminated": {"exitCode": 143}}}
    condition = {"type": "DisruptionTarget", "status": "True"}
    pod = {
        "metadata": {"namespace": "default", "name": "x"},
        "status": {"containerStatuses": [state], "conditions": [condition]},
    }
    rules = [rule("FailJob", 2), disruption("Ignore"), rule("Count", 143)]
    assert judge({"rules": rules}, pod).action == "Ignore"
    assert judge({"rules": [rules[2], rules[1]]}, pod).action == "Count"
    others = {"operator": "NotIn", "values": [138]}
    verdict = judge({"rules": [{"action": "FailJob", "onExitCodes": others}]}, pod)
    assert "failed with exit code 143 matching FailJob rule at index 0" in verdict.message
    assert judge({"rules": rules[:1]}, pod).counts


def test_each_failure_doubles_the_wait_also_one_that_counts_for_nothing() -> None:
    timing, record = Timing(pod_backoff=10, pod_backoff_longest=60), Record()
    assert record.remaining(timing) == 0
    waits = []
    for _ in range(4):
        record.fail(counts=False)
        waits.append(round(record.remaining(timing)))
    assert waits == [10, 20, 40, 60]
