"""A Kubeflow Pipelines cluster: training is a pod that asks for what it needs at least.

Requests without limits: a pod that is given idle cores may use them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipelines.targets.kfp.settings import KfpSettings

CPU_REQUEST = "2"
MEMORY_REQUEST = "4G"


@dataclass(frozen=True)
class Kfp:
    """The target; `workers` is a parameter of the pipeline."""

    fixed_workers: int | None = None

    def train(self, component: Any, inputs: Mapping[str, Any]) -> Any:
        """Returns the task with its requests of CPU and memory."""
        return component(**inputs).set_cpu_request(CPU_REQUEST).set_memory_request(MEMORY_REQUEST)

    def release(self, model: Any) -> None:
        """Nothing follows the export."""


def target(settings: KfpSettings, *, image: str, workers: int) -> Kfp:
    """Returns the target."""
    return Kfp()
