"""Reads one TF_CONFIG, or Vertex's CLUSTER_SPEC, which is the same under other role names.

Platforms spell it in many ways (`master`, an index in quotes, an evaluator that is listed or not,
parameter servers that nobody uses); all of them become one ClusterSpec, and what cannot be meant
is an error that names the value.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from trainer.cluster.spec import ClusterSpec, Role, short, split_address, whole
from trainer.errors import UsageError

ROLES: Mapping[str, Role] = {
    "chief": "chief",
    "master": "chief",
    "worker": "worker",
    "ps": "ps",
    "evaluator": "evaluator",
}
# Pool 2 is parameter servers or a reduction server: neither takes part in our all-reduce.
VERTEX_POOLS: Mapping[str, Role] = {
    "workerpool0": "chief",
    "workerpool1": "worker",
    "workerpool2": "ps",
    "workerpool3": "evaluator",
}


def parse(name: str, text: str, roles: Mapping[str, Role], notes: list[str]) -> ClusterSpec | None:
    """Returns the cluster that the variable `name` describes, None if it describes none.

    notes: gets a line for everything that was decided rather than read.

    Raises:
      UsageError: it is not understood, or means something that this trainer must not do.
    """
    document = _document(name, text)
    if "sparseCluster" in document:
        raise UsageError(
            f"{name} has sparseCluster, which names this task alone, so every pod would train by "
            "itself: set enableDynamicWorker to false in the TFJob, or pass --alone"
        )
    cluster = _cluster(name, document.get("cluster", {}), roles)
    task = document.get("task")
    if not cluster:
        notes.append(f"{name} names no cluster")
        return _task_without_cluster(name, task, roles) if task else None
    role, index = _task(name, task, roles)
    return _place(name, cluster, role, index, notes)


def _document(name: str, text: str) -> dict[str, Any]:
    if not text.strip():
        return {}
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:  # also a number of 5,000 digits, 1,000 levels
        raise UsageError(
            f"{name} is not JSON ({error}; it begins {text.strip()[:40]!r}): mend or unset it"
        ) from None
    if not isinstance(document, dict):
        raise UsageError(
            f"{name} ({_short(document)}): expected an object with cluster and task; unset it to "
            "train alone"
        )
    return document


def _cluster(name: str, value: Any, roles: Mapping[str, Role]) -> dict[Role, list[str]]:
    """Returns the addresses by role, roles without any left out."""
    if not isinstance(value, dict):
        raise UsageError(f"{name}: cluster ({_short(value)}) must map roles to lists of host:port")
    cluster: dict[Role, list[str]] = {}
    for key, hosts in value.items():
        role = _role(name, key, roles, "cluster")
        addresses = _addresses(name, key, hosts)
        if role in cluster and addresses:
            raise UsageError(f"{name}: cluster lists the {role} twice, as chief and as master")
        if addresses:
            cluster[role] = addresses
    if len(cluster.get("chief", ())) > 1:
        raise UsageError(f"{name}: {len(cluster['chief'])} chiefs in cluster, there can be one")
    training = [a for role in ("chief", "worker") for a in cluster.get(role, ())]
    check_distinct(name, training)
    return cluster


def check_distinct(name: str, addresses: list[str]) -> None:
    """Raises UsageError if an address is listed twice: two workers cannot share a port."""
    for address in addresses:
        if addresses.count(address) > 1:
            raise UsageError(f"{name}: {address} is listed twice, every worker needs its own")


def _addresses(name: str, role: str, hosts: Any) -> list[str]:
    if isinstance(hosts, dict):
        hosts = _without_holes(name, role, hosts)
    if not isinstance(hosts, list):
        raise UsageError(f"{name}: {role} ({_short(hosts)}) must be a list of host:port")
    for address in hosts:
        try:
            split_address(str(address))
        except ValueError as error:
            raise UsageError(f"{name}: {role}: {error}") from None
    return [str(address) for address in hosts]


def _without_holes(name: str, role: str, hosts: dict[str, Any]) -> list[Any]:
    """Returns the values of {"0": …, "1": …} in order; a gap means that others are hidden."""
    if set(hosts) != {str(index) for index in range(len(hosts))}:
        raise UsageError(
            f"{name}: {role} lists only {', '.join(sorted(hosts))} of its tasks, so the others "
            "are unknown here: list all from 0, or pass --alone"
        )
    return [hosts[str(index)] for index in range(len(hosts))]


def _task_without_cluster(name: str, task: Any, roles: Mapping[str, Role]) -> ClusterSpec | None:
    """Without a cluster only a task's role can matter; a second task of its kind cannot be right.

    Otherwise each of them would train alone into one output.
    """
    role, index = _task(name, task, roles)
    if role in ("ps", "evaluator"):
        return ClusterSpec(role, index, (), name)
    if index:
        raise UsageError(
            f"{name}: task is {role} {index}, but no cluster is named: list all workers under "
            "cluster, or pass --alone"
        )
    return None


def _task(name: str, task: Any, roles: Mapping[str, Role]) -> tuple[Role, int]:
    example = f'{{"type": "{next(iter(roles))}", "index": 0}}'
    if task is None:
        raise UsageError(f"{name} lacks task: add which one this process is, as {example}")
    if not isinstance(task, dict):
        raise UsageError(f"{name}: task ({_short(task)}) must be an object like {example}")
    for key in ("type", "index"):
        if key not in task:
            raise UsageError(f"{name}: task ({_short(task)}) lacks {key}: write it as {example}")
    return _role(name, task["type"], roles, "task.type"), _index(name, task["index"])


def _role(name: str, value: Any, roles: Mapping[str, Role], where: str) -> Role:
    if value not in tuple(roles):
        raise UsageError(f"{name}: {where} has {_short(value)}: known are {', '.join(roles)}")
    return roles[value]


def _index(name: str, value: Any) -> int:
    """Returns a whole number ≥ 0; "1" and 1.0 count, since platforms write both."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    index = whole(str(value)) if isinstance(value, str | int) else None
    if index is not None and not isinstance(value, bool):
        return index
    raise UsageError(f"{name}: task.index ({_short(value)}) must be a whole number from 0 on")


def _place(
    name: str, cluster: dict[Role, list[str]], role: Role, index: int, notes: list[str]
) -> ClusterSpec:
    chief, others = cluster.get("chief", []), cluster.get("worker", [])
    listed = cluster.get(role)
    # Only Kubeflow lists the evaluator; it may also be missing from `cluster` (Vertex).
    may_be_missing = role in ("evaluator", "ps")
    if (listed is None and not may_be_missing) or (listed is not None and index >= len(listed)):
        raise UsageError(
            f"{name}: task {role} {index} is outside the cluster, which has "
            f"{len(listed or ())} of that type: task.index counts from 0"
        )
    if not chief and others:
        notes.append("no chief is listed: worker 0 is the chief")
    if servers := cluster.get("ps"):
        notes.append(f"parameter servers are not used: {len(servers)} left out")
    if role == "evaluator":
        notes.append("an evaluator never joins the workers' all-reduce")
    workers = (*chief, *others)
    if role in ("evaluator", "ps"):
        return ClusterSpec(role, index, workers, name)
    rank = index + len(chief) if role == "worker" else 0
    return ClusterSpec("worker" if rank else "chief", rank, workers, name)


def _short(value: Any) -> str:
    return short(json.dumps(value))
