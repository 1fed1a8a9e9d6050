"""Twenty training steps in processes of their own: the fixture behind the tests of the step.

Two logical CPUs must be configured before TensorFlow starts, and a hang must not hang the tests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests import step_worker
from tests.datasets import make_dataset
from tests.workers import processes, tf_configs

TOLERANCE = 1e-6

Train = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def train(tmp_path_factory: pytest.TempPathFactory) -> Train:
    """Returns a function that runs 20 steps in processes of their own and returns the outcome."""
    root = tmp_path_factory.mktemp("step")
    for kind in ("binary", "multiclass", "regression"):
        make_dataset(root / kind, rows=3000, shards=8, kind=kind)
    done: dict[str, dict[str, Any]] = {}

    def train(workers: int = 1, cpus: int = 1, kind: str = "binary", **options: Any) -> Any:
        key = f"{workers} {cpus} {kind} {sorted(options.items())}"
        if key not in done:
            done[key] = run(len(done), workers, cpus, kind, options)
        return done[key]

    def run(number: int, workers: int, cpus: int, kind: str, options: dict[str, Any]) -> Any:
        envs = tf_configs(workers) if workers > 1 else [{}]
        with processes() as start:
            started = []
            for rank, env in enumerate(envs):
                name = str(root / f"{number}-{rank}")
                log = root / f"{number}-{rank}.log"
                arguments = (str(root / kind), f"{name}.npz", cpus, options)
                started.append(start(step_worker.run, *arguments, log=log, env=env))
            for worker in started:
                worker.expect(0)
        return dict(np.load(root / f"{number}-0.npz"))

    return train


def difference(a: dict[str, Any], b: dict[str, Any]) -> float:
    return float(np.abs(a["weights"] - b["weights"]).max())
