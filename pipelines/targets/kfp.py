"""A Kubeflow Pipelines cluster: training is a pod that asks for what it needs at least.

Requests without limits: a pod that is given idle cores may use them.
"""

from __future__ import annotations

from typing import Any

CPU_REQUEST = "2"
MEMORY_REQUEST = "4G"


def place(training: Any) -> None:
    """Requests CPU and memory for the training task."""
    training.set_cpu_request(CPU_REQUEST).set_memory_request(MEMORY_REQUEST)
