"""Where a pipeline runs. Only the training step, and what may follow the export, differ.

A target is a module or package here with `target(settings, *, image, workers)`; what it can be told
stands in its `settings.py` (see `pipelines.settings`). This module knows the names alone, so that
none is imported before it is chosen.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, Protocol

TARGETS = ("local", "kfp", "vertex")


class Target(Protocol):
    """What one platform puts into the pipeline.

    fixed_workers: how many workers train, where the platform must know it when the pipeline is
      compiled; None where `workers` is a parameter of the pipeline.
    """

    @property
    def fixed_workers(self) -> int | None:
        """The number of workers, if it cannot be a parameter."""

    def train(self, component: Any, inputs: Mapping[str, Any]) -> Any:
        """Returns the task that trains, with the output `run`.

        `component` is train_model in its image; `inputs` holds dataset, task, workers, steps,
        epochs and config.
        """

    def reach(self, task: Any) -> None:
        """Lets the task that reads the sources get at them."""

    def release(self, model: Any) -> None:
        """Adds the steps that follow the export; `model` is what it made."""


def load(name: str, settings: Any, *, image: str, workers: int) -> Target:
    """Returns the target `name`; `settings` is an instance of its settings, None if it has none.

    Raises:
      UsageError: the platform would refuse what the settings ask for.
    """
    module: Any = importlib.import_module(f"pipelines.targets.{name}")
    return module.target(settings, image=image, workers=workers)
