"""Runs of the worked examples in processes of their own, and what is looked at afterwards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.runs import cluster, run_main
from tests.workers import Worker

Start = Callable[..., Worker]


def train(start: Start, output: Path, *, workers: int = 1, **keys: Any) -> list[Worker]:
    """Starts a run; wait for what comes back."""
    keys = {
        "output": output, "jit": "off", "steps_per_call": 10, "log_every": 10,
        "heartbeat_timeout_seconds": 10, "startup_deadline_seconds": 60, **keys,
    }  # fmt: skip
    argv = [word for key, value in keys.items() for word in (f"--{key}", str(value))]
    logs = output.with_suffix(".logs")
    logs.mkdir()
    if workers == 1:
        return [start(run_main, argv, log=logs / "one.log")]
    return cluster(start, argv, logs, workers)


def finish(*runs: list[Worker]) -> None:
    for run in runs:
        for worker in run:
            worker.expect(0)


def ask(start: Start, look: Callable[..., None], *arguments: Any, log: Path) -> Any:
    """Runs `look(*arguments, path)` in a process of its own and returns what it saved there."""
    path = log.with_suffix(".npz")
    start(look, *map(str, arguments), str(path), log=log).expect(0)
    return dict(np.load(path))


def weights(run: str, step: str, path: str) -> None:
    """Saves all weights of a checkpoint, by name."""
    from trainer.loop.variables import task_variables
    from trainer.trained import load

    task = load(run, step=int(step)).task
    np.savez(path, **{k.replace("/", "."): v for k, v in task_variables(task).items()})


def difference(one: Any, other: Any) -> float:
    """Returns the largest difference of two sets of weights."""
    assert one.keys() == other.keys()
    return max(float(np.abs(one[name] - other[name]).max()) for name in one)
