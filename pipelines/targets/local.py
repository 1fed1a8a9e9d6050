"""This machine: training starts its worker processes here, with whatever the machine has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Local:
    """`kfp.local` knows no resources: the training task stays as it is."""

    fixed_workers: int | None = None

    def train(self, component: Any, inputs: Mapping[str, Any]) -> Any:
        """Returns the plain task."""
        return component(**inputs)

    def reach(self, task: Any) -> None:
        """Every step is this user's."""

    def release(self, model: Any) -> None:
        """Nothing follows the export."""


def target(settings: None, *, image: str, workers: int) -> Local:
    """Returns the target; there is nothing to set."""
    return Local()
