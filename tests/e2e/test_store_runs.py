"""A run whose data and --output are in s3://: lost machines, stops and restarts anywhere."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import s3fs

from tests.recording import FILE, PACE
from tests.runs import TOLERANCE, dataset, flags, run_main, start, steps_logged, weights
from tests.s3 import BUCKET, KEYS, SETTINGS, client, s3_server
from tests.workers import Worker, tf_configs
from trainer.data.dataset import Dataset

__all__ = ["dataset", "start"]

URL = f"s3://{BUCKET}/run"


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[s3fs.S3FileSystem]:
    with s3_server() as url:
        for name, value in {**SETTINGS, **KEYS, "AWS_ENDPOINT_URL": url}.items():
            monkeypatch.setenv(name, value)
        yield client(url)


class Machine(Worker):
    """`python -m trainer` as a container runs it, with a log."""

    def __init__(self, argv: list[str], env: dict[str, str], log: Path) -> None:
        self.log = log
        with log.open("wb") as file:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "trainer", *argv],
                env={**os.environ, **env}, stdout=file, stderr=file,
            )  # fmt: skip

    @property
    def pid(self) -> int:
        return self._child.pid

    def wait(self, timeout: float = 120) -> int:
        return self._child.wait(timeout)

    def is_alive(self) -> bool:
        return self._child.poll() is None

    def end(self) -> None:
        self._child.kill()
        self._child.wait()


@pytest.mark.timeout(280)
def test_a_run_in_a_store_survives_its_machines(
    dataset: Dataset, tmp_path: Path, start: Any, store: s3fs.S3FileSystem
) -> None:
    store.put(f"{dataset.path}/", f"{BUCKET}/dataset/", recursive=True)
    slowly = {FILE: str(tmp_path / "rows"), PACE: "0.04"}
    quickly = {FILE: str(tmp_path / "rows"), PACE: "0"}
    same = {"task": "tests.recording:Recording", "steps_per_call": 5}
    undisturbed = tmp_path / "undisturbed"
    start(
        run_main, flags(dataset, undisturbed, **same), env=quickly, log=tmp_path / "undisturbed.log"
    ).expect(0)
    argv = flags(dataset, URL, **same, data=f"s3://{BUCKET}/dataset")

    def committed(step: int) -> bool:
        return bool(store.exists(f"{BUCKET}/run/checkpoints/step-{step:08d}/COMMIT.json"))

    def status() -> dict[str, Any]:
        return dict(json.loads(store.cat(f"{BUCKET}/run/status.json")))

    with machines(tmp_path) as machine:
        chief, worker = (machine(argv, {**slowly, **env}) for env in tf_configs(2))
        chief.wait_for(lambda: committed(100))
        chief.send(signal.SIGKILL)  # and with it all that this machine had
        worker.expect(138, timeout=30)
        alone = machine(argv, slowly)
        alone.wait_for(lambda: f"resuming {URL} from step" in alone.output)
        alone.wait_for(lambda: status()["generation"] == 1)
        said = machine(argv, quickly).expect(2)
        assert f"--output {URL}: another process is training into it" in said
        alone.send(signal.SIGTERM)
        alone.expect(143)
        assert (status()["state"], status()["generation"]) == ("preempted", 1)
        assert committed(status()["step"])
        board = f"s3://{BUCKET}/board"
        last = machine(argv, {**quickly, "AIP_TENSORBOARD_LOG_DIR": board})
        last.expect(0)
    assert (status()["state"], status()["step"]) == ("completed", 400)
    assert store.glob(f"{BUCKET}/board/train/events.out.*")
    store.get(f"{BUCKET}/run/", f"{tmp_path}/run/", recursive=True)
    found, expected = (weights(start, run) for run in (tmp_path / "run", undisturbed))
    assert np.abs(found - expected).max() <= TOLERANCE
    assert steps_logged(tmp_path / "run") == list(range(50, 401, 50))


@pytest.mark.timeout(60)
def test_a_store_that_cannot_be_read_is_one_line_and_nothing_starts(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**SETTINGS, **KEYS, "AWS_MAX_ATTEMPTS": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with machines(tmp_path) as machine:
        said = machine(flags(dataset, URL), {}).expect(2)
    *tries, error = said.splitlines()
    assert error.startswith(f"castell: error: --output {URL} cannot be read: Could not connect")
    assert [f"({n} of 5 tries)" in line for n, line in enumerate(tries, 1)] == [True] * 4


@contextmanager
def machines(logs: Path) -> Iterator[Callable[[list[str], dict[str, str]], Machine]]:
    """Yields what starts one; those that are left are killed."""
    made: list[Machine] = []

    def machine(argv: list[str], env: dict[str, str]) -> Machine:
        made.append(Machine(argv, env, logs / f"machine-{len(made)}.log"))
        return made[-1]

    try:
        yield machine
    finally:
        for each in made:
            each.end()
