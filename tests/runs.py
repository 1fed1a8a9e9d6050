"""Whole training runs in real processes: fixtures and what tests look at."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.datasets import make_dataset
from tests.workers import Worker, processes, tf_configs
from trainer.__main__ import main
from trainer.data.dataset import Dataset

STEPS = 400
TOLERANCE = 1e-6


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return make_dataset(tmp_path_factory.mktemp("data"), rows=4000, shards=8)


@pytest.fixture
def start() -> Iterator[Callable[..., Worker]]:
    with processes() as starter:
        yield starter


def flags(dataset: Dataset, output: Path | str, **changes: Any) -> list[str]:
    values = {
        "data": dataset.path, "output": output, "steps": STEPS, "global_batch": 64,
        "hidden": "16", "checkpoint_every": 100, "log_every": 50, "steps_per_call": 10,
        "heartbeat_timeout_seconds": 3, "startup_deadline_seconds": 60, **changes,
    }  # fmt: skip
    return [word for key, value in values.items() for word in (f"--{key}", str(value))]


def run_main(argv: list[str]) -> int:
    return main(argv)


def cluster(start: Any, argv: list[str], logs: Path, workers: int = 2) -> list[Worker]:
    logs.mkdir(exist_ok=True)
    stamp = len(list(logs.iterdir()))
    return [
        start(run_main, argv, env=env, log=logs / f"{stamp}-{rank}.log")
        for rank, env in enumerate(tf_configs(workers))
    ]


def status(output: Path) -> dict[str, Any]:
    path = output / "status.json"
    return dict(json.loads(path.read_text())) if path.exists() else {"step": 0}


def steps_logged(output: Path) -> list[int]:
    return [json.loads(line)["step"] for line in (output / "metrics.jsonl").open()]


def save_weights(run: str, path: str) -> int:
    from trainer.trained import load

    model = load(run).task.models()["model"]
    np.save(path, np.concatenate([w.ravel() for w in model.get_weights()]))
    return 0


def weights(start: Any, run: Path) -> Any:
    """Reads the final weights in a process of their own, from the checkpoint alone."""
    path = run.with_suffix(".npy")
    start(save_weights, str(run), str(path), log=run.with_suffix(".weights.log")).expect(0)
    return np.load(path)


@pytest.fixture(scope="session")
def undisturbed(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The weights of a run of one worker from start to end."""
    root = tmp_path_factory.mktemp("undisturbed")
    with processes() as start:
        start(run_main, flags(dataset, root / "run"), log=root / "log").expect(0)
        return weights(start, root / "run")
