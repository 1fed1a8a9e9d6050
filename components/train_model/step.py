"""Trains on a Dataset artifact and says on the Model artifact what came out."""

from __future__ import annotations

import json
import os
from typing import Any

from components.steps import Artifact, location, one_line_ends, whole_numbers
from components.train_model.launch import train
from trainer import files
from trainer.cluster.resolve import resolve
from trainer.errors import UsageError


def run(
    dataset: Artifact, run: Artifact, *, task: str, workers: int, steps: int, epochs: float,
    config: dict[str, Any],
) -> None:  # fmt: skip
    """Trains; `steps` and `epochs` at 0 leave the length to `config` or the trainer's default."""
    with one_line_ends():
        keys = {**whole_numbers(config), **lengths(steps, epochs)}
        if workers < 1:
            raise UsageError(f"workers ({workers}): must be at least 1")
        output = location(run)
        train(data=location(dataset), output=output, task=task, workers=workers, config=keys)
        # Only the chief's artifacts count, and it may still be writing what others would read.
        if resolve(os.environ, alone=False, workers=None).is_chief:
            run.metadata.update(outcome(output))
            run.metadata["dataset_fingerprint"] = dataset.metadata.get("fingerprint", "")


def lengths(steps: int, epochs: float) -> dict[str, Any]:
    """Returns the keys of the length that are given: 0 leaves it to `config` or the default."""
    return {key: value for key, value in (("steps", steps), ("epochs", epochs)) if value}


def outcome(output: str) -> dict[str, Any]:
    """Returns what the console should show of a finished run."""
    status = json.loads(files.read_text(files.join(output, "status.json")))
    lines = files.read_text(files.join(output, "metrics.jsonl")).splitlines()
    last = json.loads(lines[-1]) if lines else {}
    return {
        "framework": "tensorflow",
        "step": status["step"],
        "replicas": status["replicas"],
        "strategy": status["strategy"],
        "loss": last.get("loss"),
        "examples_per_second": last.get("examples_per_second"),
    }
