"""`castell run --runner docker`: a stop, a killed container and a killed run leave nothing behind.

Each runs the real command, which runs containers of the image.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from signal import SIGINT, SIGKILL, SIGTERM
from typing import Any

import pytest

from pipelines.compile import compile_to
from tests.docker.engine import docker

_ROWS = 4000


class Run:
    """One `castell run` in the background; `containers` are those of its workdir."""

    def __init__(self, place: Path, pipeline: str, *params: str) -> None:
        self.workdir = place / "runs"
        command = [sys.executable, "-m", "pipelines.cli", "run", pipeline, "--runner", "docker"]
        command += ["--workdir", str(self.workdir)]
        command += [word for param in params for word in ("--param", param)]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._out, self._err = "", ""
        self._readers = [
            threading.Thread(target=self._read, args=(name,)) for name in ("stdout", "stderr")
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, name: str) -> None:
        for line in getattr(self.process, name):
            setattr(self, f"_{name[3:]}", getattr(self, f"_{name[3:]}") + line)

    @property
    def output(self) -> str:
        return f"{self._out}{self._err}"

    @property
    def containers(self) -> list[str]:
        label = f"label=castell.workdir={self.workdir}"
        return docker("ps", "--all", "--quiet", "--filter", label).split()

    def wait_for(self, condition: Callable[[], bool], timeout: float = 90) -> None:
        deadline = time.monotonic() + timeout
        while not condition():
            assert self.process.poll() is None, self.output
            assert time.monotonic() < deadline, f"nothing after {timeout} s:\n{self.output}"
            time.sleep(0.02)

    def expect(self, code: int, timeout: float = 60) -> str:
        assert self.process.wait(timeout) == code, self.output
        for reader in self._readers:
            reader.join()
        return self._err

    def status(self) -> dict[str, Any]:
        files = list(self.workdir.glob("*/train-model/run/status.json"))
        return dict(json.loads(files[0].read_text())) if files else {"step": 0}


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Yields what begins a run on a small table; nothing of it is left at the end."""
    rows = "".join(f"{i},{i % 7},{i % 2}\n" for i in range(_ROWS))
    (tmp_path / "table.csv").write_text("a,b,y\n" + rows)
    runs: list[Run] = []

    def start(pipeline: str = "train_evaluate_export", *params: str) -> Run:
        runs.append(Run(tmp_path, pipeline, f"sources={tmp_path}/*.csv", "label=y", *params))
        return runs[-1]

    yield start
    for run in runs:
        run.process.kill()
        run.process.wait()
        for container in run.containers:
            docker("rm", "--force", container)


def training(begin: Callable[..., Run]) -> Run:
    run = begin("train_evaluate_export", "steps=1000000", "config={checkpoint_every: 1000000}")
    run.wait_for(lambda: run.status()["step"] > 0)
    return run


@pytest.mark.timeout(180)
def test_sigterm_saves_the_training_and_leaves_no_container(begin: Callable[..., Run]) -> None:
    run = training(begin)
    run.process.send_signal(SIGTERM)
    assert run.expect(143).startswith("castell: error: told to stop in step train-model: ")
    status = run.status()
    assert (status["state"], status["exit_code"]) == ("preempted", 143)
    (saved,) = run.workdir.glob("*/train-model/run/checkpoints/step-*/COMMIT.json")
    assert int(saved.parent.name.removeprefix("step-")) == status["step"]
    assert not run.containers


@pytest.mark.timeout(180)
def test_a_container_that_is_killed_is_called_killed(begin: Callable[..., Run]) -> None:
    run = training(begin)
    (container,) = run.containers
    docker("kill", container)
    assert run.expect(137) == (
        "castell: error: step train-model failed: its container ended with exit code 137: killed: "
        "by hand, or for want of memory\n"
    )
    assert not run.containers


@pytest.fixture
def shard(tmp_path: Path) -> str:
    compile_to(str(tmp_path / "shard_data.yaml"), "shard_data")
    return str(tmp_path / "shard_data.yaml")


@pytest.mark.timeout(180)
def test_a_run_ends_what_a_killed_run_left_on_its_workdir(
    begin: Callable[..., Run], shard: str
) -> None:
    killed = training(begin)
    (left,) = killed.containers
    killed.process.send_signal(SIGKILL)
    killed.expect(-SIGKILL)
    assert killed.containers == [left]
    run = begin(shard)
    assert re.search(
        r"castell: ending container \S+, which a killed run \(process .*", run.expect(0)
    )
    assert killed.status()["state"] == "preempted"
    assert not run.containers


@pytest.mark.timeout(120)
def test_a_signal_at_a_step_s_start_leaves_no_container(
    begin: Callable[..., Run], shard: str
) -> None:
    run = begin(shard)
    run.wait_for(lambda: bool(run.containers))
    run.process.send_signal(SIGINT)
    assert run.expect(143).startswith("castell: error: told to stop ")
    assert not run.containers
