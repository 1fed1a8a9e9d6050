"""Vertex AI Pipelines: limits choose the machine that the training task gets.

No kfp.kubernetes setting may stand in the YAML: it would make a second document, and Vertex
refuses that.
"""

from __future__ import annotations

from typing import Any

CPU_LIMIT = "8"
MEMORY_LIMIT = "32G"


def place(training: Any) -> None:
    """Asks for a machine of 8 cores and 32 GB for the training task."""
    training.set_cpu_limit(CPU_LIMIT).set_memory_limit(MEMORY_LIMIT)
