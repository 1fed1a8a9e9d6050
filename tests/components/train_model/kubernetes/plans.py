"""A training in pods, for tests that change one thing of it."""

from __future__ import annotations

from typing import Any

from components.train_model.kubernetes.manifest import Owner, Plan
from components.train_model.kubernetes.options import JobOptions


def make_plan(**changes: Any) -> Plan:
    values: dict[str, Any] = {
        "image": "castell:0.1.0",
        "data": "s3://bucket/dataset",
        "output": "s3://bucket/run",
        "task": "tabular",
        "workers": 3,
        "config": {"global_batch": 96, "hidden": [8, 4], "class_weights": {"no": 1, "50%": 2}},
        "options": JobOptions(),
        "owner": Owner("v1", "Pod", "step-pod", "1234"),
        "resources": {"requests": {"cpu": "2"}, "limits": {"memory": "4Gi"}},
    }
    return Plan(**{**values, **changes})
