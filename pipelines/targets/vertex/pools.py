"""The worker pools of a training job: chief, workers, reduction servers, evaluator; in that order.

Their positions are their roles, so no pool before the last may be missing. Components of Google's
delete empty ones on the way, and an evaluator would slide to where workers stand: a pool that
only sleeps holds the place, as a parameter server that nobody asks (the trainer leaves those out).
"""

from __future__ import annotations

import copy
from typing import Any

from pipelines.targets.vertex.settings import VertexSettings

# The smallest machine that custom training takes of the general family.
HOLDER_MACHINE = "e2-standard-4"


def worker_pools(chief: dict[str, Any], settings: VertexSettings, workers: int) -> list[Any]:
    """Returns `workerPoolSpecs`; `chief` is the pool of one replica that all others resemble."""
    chief = copy.deepcopy(chief)
    if settings.tpu_topology:
        chief["machine_spec"]["tpu_topology"] = settings.tpu_topology
    pools = [chief]
    if workers > 1:
        pools.append({**copy.deepcopy(chief), "replica_count": workers - 1})
    if settings.reduction_servers:
        pools.append(
            _plain(
                settings.reduction_server_machine_type,
                settings.reduction_servers,
                {"image_uri": settings.reduction_server_image},
            )
        )
    if settings.evaluator:
        if not settings.reduction_servers:
            sleeps = {
                "image_uri": chief["container_spec"]["image_uri"],
                "command": ["sleep", "infinity"],
            }
            pools.append(_plain(HOLDER_MACHINE, 1, sleeps))
        pools.append(copy.deepcopy(chief))
    return pools


def _plain(machine: str, count: int, container: dict[str, Any]) -> dict[str, Any]:
    return {
        "machine_spec": {"machine_type": machine},
        "replica_count": count,
        "container_spec": container,
    }
