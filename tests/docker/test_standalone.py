"""The trainer image without any pipeline: two containers that find each other by TF_CONFIG."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.datasets import make_dataset
from tests.docker.engine import TRAINER, Container, containers, docker

HOSTS = ("chief", "worker")
ARGS = (
    "--data", "/data", "--output", "/run/it", "--global_batch", "64", "--hidden", "16",
    "--checkpoint_every", "100", "--log_every", "50", "--heartbeat_timeout_seconds", "3",
    "--startup_deadline_seconds", "90",
)  # fmt: skip
LOCKED_DOWN = ("--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    make_dataset(tmp_path / "data", rows=4000, shards=8)
    (tmp_path / "run").mkdir()
    return tmp_path


def pair(start: Any, place: Path, *more: str, options: Sequence[str] = ()) -> list[Container]:
    cluster = {"worker": [f"{host}:2222" for host in HOSTS]}

    def tf_config(index: int) -> str:
        return json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}})

    return [
        start(
            TRAINER, [*ARGS, *more], host=host, options=[*LOCKED_DOWN, *options],
            mounts={place / "data": "/data:ro", place / "run": "/run"},
            env={"TF_CONFIG": tf_config(i), "HOME": "/tmp"},
        )
        for i, host in enumerate(HOSTS)
    ]  # fmt: skip


def status(place: Path) -> dict[str, Any]:
    path = place / "run" / "it" / "status.json"
    return dict(json.loads(path.read_text())) if path.exists() else {"step": 0}


@pytest.mark.timeout(240)
def test_sigterm_to_a_container_saves_and_ends_all_with_143_and_they_resume(data: Path) -> None:
    with containers("standalone") as start:
        chief, worker = pair(start, data, "--steps", "1000000", "--steps_per_call", "1")
        chief.wait_for(lambda: status(data)["step"] > 100)
        docker("stop", "--time", "60", worker.name)
        for each in (chief, worker):
            each.expect(143)
        stopped = status(data)
        assert (stopped["state"], stopped["exit_code"]) == ("preempted", 143)
        step = stopped["step"]
        assert (data / "run" / "it" / "checkpoints" / f"step-{step:08d}" / "COMMIT.json").exists()
        for each in pair(start, data, "--steps", str(step + 100)):
            each.expect(0)
    assert (status(data)["state"], status(data)["step"]) == ("completed", step + 100)


@pytest.mark.timeout(120)
def test_a_cut_network_ends_both_with_138(data: Path) -> None:
    with containers("standalone") as start:
        chief, worker = pair(start, data, "--steps", "1000000", "--steps_per_call", "1")
        chief.wait_for(lambda: status(data)["step"] > 100)
        (network,) = worker.inspect()["NetworkSettings"]["Networks"]
        docker("network", "disconnect", network, worker.name)
        for each in (chief, worker):
            each.expect(138, timeout=30)
