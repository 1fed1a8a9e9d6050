"""The Job controller: restarts, limits, podFailurePolicy, ends. Pods are real containers."""

from __future__ import annotations

from typing import Any

from tests.doubles.kubernetes.cluster import Cluster
from tests.doubles.kubernetes.policy import judge
from tests.doubles.kubernetes.samples import Clients, disruption, job, rule, service

# Fails with 138 the first time, as the volume remembers.
ONCE = "import os,sys; m='/memory/'+os.uname().nodename; sys.exit(os.path.exists(m) or os.mkdir(m) or 138)"
INDEXED = "import os,sys; sys.exit(int(os.environ['CODES'].split()[int(os.environ['JOB_COMPLETION_INDEX'])]))"


def codes(*wanted: int, **spec: Any) -> dict[str, Any]:
    """Worker i leaves with the i-th code."""
    env = [{"name": "CODES", "value": " ".join(map(str, wanted))}]
    return job(INDEXED, workers=len(wanted), container={"env": env}, **spec)


def status(cluster: Cluster) -> Any:
    return Clients(cluster).batch.read_namespaced_job("flights", "default").status


def test_workers_find_each_other_by_name(cluster: Cluster) -> None:
    # Worker 0 waits for worker 1 at its name, under the Service that comes after the Job.
    code = (
        "import os,socket,time\n"
        "if os.environ['JOB_COMPLETION_INDEX'] == '1':\n"
        " socket.create_server(('', 2222)).accept()[0].send(socket.gethostname().encode())\n"
        "else:\n"
        " end = time.time() + 20\n"
        " while True:\n"
        "  try: print(socket.create_connection(('flights-1.flights.default.svc.cluster.local', 2222)).recv(99)); break\n"
        "  except OSError:\n"
        "   assert time.time() < end; time.sleep(0.1)\n"
    )
    clients = Clients(cluster)
    clients.batch.create_namespaced_job("default", job(code, workers=2))
    clients.core.create_namespaced_service("default", service())
    assert cluster.finished("flights") == "Complete"
    (pod,) = cluster.pods("flights", 0)
    assert "flights-1" in clients.core.read_namespaced_pod_log(pod["metadata"]["name"], "default")
    done = status(cluster)
    assert (done.succeeded, done.completed_indexes, done.failed, done.active) == (2, "0,1", None, None)
    meta = clients.core.list_namespaced_pod("default", label_selector="job-name=flights").items[1].metadata
    assert meta.labels["batch.kubernetes.io/job-completion-index"] == "1"
    assert (meta.owner_references[0].kind, meta.name[:10]) == ("Job", "flights-1-")


def test_an_ignored_failure_is_tried_again_and_counts_for_nothing(tmp_path: Any) -> None:
    volume = {"name": "memory", "persistentVolumeClaim": {"claimName": "memory"}}
    with Cluster(volumes={"memory": str(tmp_path)}) as cluster:
        body = job(
            ONCE, workers=2, podFailurePolicy={"rules": [rule("FailJob", 2, 3), rule("Ignore", 138, 143)]},
            container={"volumeMounts": [{"name": "memory", "mountPath": "/memory"}]},
            pod={"volumes": [volume]},
        )  # fmt: skip
        Clients(cluster).batch.create_namespaced_job("default", body)
        # The second try finds the directory: exit code 1 (True), which no rule names.
        assert cluster.finished("flights") == "BackoffLimitExceeded"
        assert status(cluster).failed == 2
        assert len(cluster.pods("flights", 0)) == 2


def test_a_mistake_fails_the_job_at_once_and_stops_the_others(cluster: Cluster) -> None:
    code = "import os,sys,time; os.environ['JOB_COMPLETION_INDEX'] == '1' and sys.exit(2); time.sleep(60)"
    body = job(code, workers=2, backoffLimit=5, podFailurePolicy={"rules": [rule("FailJob", 2, 3)]})
    Clients(cluster).batch.create_namespaced_job("default", body)
    assert cluster.finished("flights") == "PodFailurePolicy"
    (failed,) = cluster.pods("flights")
    end = status(cluster)
    assert [condition.type for condition in end.conditions] == ["FailureTarget", "Failed"]
    name = failed["metadata"]["name"]
    assert end.conditions[1].message == f"Container trainer for pod default/{name} failed with exit code 2 matching FailJob rule at index 0"
    assert Clients(cluster).core.read_namespaced_pod_log(name, "default") == ""


def test_failures_use_up_the_limit(cluster: Cluster) -> None:
    Clients(cluster).batch.create_namespaced_job("default", codes(1, backoffLimit=1))
    assert cluster.finished("flights") == "BackoffLimitExceeded"
    assert (status(cluster).failed, len(cluster.pods("flights"))) == (2, 2)


def test_each_index_can_have_a_limit_of_its_own(cluster: Cluster) -> None:
    body = codes(0, 1, 7, backoffLimit=9, backoffLimitPerIndex=1, podFailurePolicy={"rules": [rule("FailIndex", 7)]})
    Clients(cluster).batch.create_namespaced_job("default", body)
    assert cluster.finished("flights") == "FailedIndexes"
    end = status(cluster)
    assert (end.completed_indexes, end.failed_indexes, end.failed) == ("0", "1,2", 3)
    second = cluster.pods("flights", 1)[1]["metadata"]["annotations"]
    assert second["batch.kubernetes.io/job-index-failure-count"] == "1"


def test_too_many_failed_indexes_end_the_job(cluster: Cluster) -> None:
    body = codes(1, backoffLimitPerIndex=0, maxFailedIndexes=0)
    Clients(cluster).batch.create_namespaced_job("default", body)
    assert cluster.finished("flights") == "MaxFailedIndexesExceeded"


def test_the_deadline_of_a_job(cluster: Cluster) -> None:
    body = job("import time; time.sleep(60)", activeDeadlineSeconds=1, pod={"terminationGracePeriodSeconds": 0})
    Clients(cluster).batch.create_namespaced_job("default", body)
    assert cluster.finished("flights") == "DeadlineExceeded"
    assert cluster.pods("flights") == []


def test_a_job_is_suspended_and_resumed(cluster: Cluster) -> None:
    batch = Clients(cluster).batch
    code = "import signal,sys,time; signal.signal(15, lambda *a: sys.exit(143)); print('up'); time.sleep(60)"
    batch.create_namespaced_job("default", job(code))
    first = cluster.running("flights", 0)
    batch.patch_namespaced_job("flights", "default", {"spec": {"suspend": True}})
    cluster.wait(lambda: not cluster.pods("flights"))
    assert status(cluster).failed is None
    batch.patch_namespaced_job("flights", "default", {"spec": {"suspend": False}})
    assert cluster.running("flights", 0) != first


def test_a_deleted_job_takes_its_pods_along_or_not(cluster: Cluster) -> None:
    batch = Clients(cluster).batch
    for policy in ("Background", "Foreground"):
        batch.create_namespaced_job("default", job("import time; time.sleep(60)"))
        cluster.running("flights", 0)
        batch.delete_namespaced_job("flights", "default", propagation_policy=policy)
        left = [item.metadata.name for item in batch.list_namespaced_job("default").items]
        assert left == (["flights"] if policy == "Foreground" else [])
        cluster.wait(lambda: not cluster.pods("flights"))
        cluster.wait(lambda: not batch.list_namespaced_job("default").items)
    batch.create_namespaced_job("default", job("import time; time.sleep(60)"))
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
    assert verdict.message == "Container trainer for pod default/x failed with exit code 143 matching FailJob rule at index 0"
    assert judge({"rules": rules[:1]}, pod).counts
