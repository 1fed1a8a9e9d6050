"""A Job, a Service and clients for the tests of the double."""

from __future__ import annotations

from typing import Any

from kubernetes import client

from tests.doubles.kubernetes.cluster import Cluster

IMAGE = "python:3.11-slim"
# Stops when told to, unlike the first process of a container that says nothing about signals.
SLEEP = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
print('up')
time.sleep(60)
"""


class Clients:
    """The real client against the double."""

    def __init__(self, cluster: Cluster) -> None:
        api = client.ApiClient(client.Configuration(host=cluster.address))
        self.batch, self.core = client.BatchV1Api(api), client.CoreV1Api(api)
        self.network, self.version = client.NetworkingV1Api(api), client.VersionApi(api)


def job(
    code: str, *, name: str = "flights", workers: int = 1, container: Any = None, pod: Any = None,
    **spec: Any,
) -> dict[str, Any]:  # fmt: skip
    """An Indexed Job whose containers run `code`; `container`, `pod` and `spec` are added."""
    main = {
        "name": "trainer", "image": IMAGE, "command": ["python", "-u", "-c", code],
        **(container or {}),
    }  # fmt: skip
    return {
        "metadata": {"name": name},
        "spec": {
            "completionMode": "Indexed", "completions": workers, "parallelism": workers,
            "backoffLimit": 0, **spec,
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "restartPolicy": "Never", "containers": [main],
                    "terminationGracePeriodSeconds": 1, **(pod or {}),
                },
            },
        },
    }  # fmt: skip


def service(name: str = "flights", **meta: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, **meta},
        "spec": {"clusterIP": "None", "selector": {"app": name}, "ports": [{"port": 2222}]},
    }


def rule(action: str, *values: int) -> dict[str, Any]:
    codes = {"containerName": "trainer", "operator": "In", "values": list(values)}
    return {"action": action, "onExitCodes": codes}


def disruption(action: str = "Ignore") -> dict[str, Any]:
    return {"action": action, "onPodConditions": [{"type": "DisruptionTarget"}]}


def start(cluster: Cluster, body: dict[str, Any]) -> Clients:
    clients = Clients(cluster)
    clients.batch.create_namespaced_job("default", body)
    return clients


def first(cluster: Cluster) -> dict[str, Any]:
    return cluster.pods("flights")[0]


def state(cluster: Cluster) -> Any:
    """Of the first pod's container; empty as long as there is none."""
    for pod in cluster.pods("flights"):
        for status in pod["status"].get("containerStatuses", []):
            return status["state"]
    return {}
