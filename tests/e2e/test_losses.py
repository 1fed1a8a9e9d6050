"""A worker dies while the others are busy with something else than steps: they leave at once."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.recording import FILE, PACE, PHASE
from tests.runs import dataset, flags, run_main, start, status
from tests.workers import tf_configs
from trainer.data.dataset import Dataset

__all__ = ["dataset", "start"]

# The target is 3 s; a busy machine gets as much again.
LEAVE_SECONDS = 6


@pytest.mark.parametrize(
    ("phase", "victim"), [("training", 0), ("training", 1), ("evaluation", 0), ("evaluation", 1)]
)
def test_a_kill_while_the_others_trace_is_noticed_at_once(
    dataset: Dataset, tmp_path: Path, start: Any, phase: str, victim: int
) -> None:
    argv = flags(
        dataset, tmp_path / "run", steps=10, task="tests.recording:Slow", jit="off",
        eval_every=5, startup_deadline_seconds=60,
    )  # fmt: skip
    signs = [tmp_path / f"{rank}.sign" for rank in range(2)]
    workers = [
        start(
            run_main, argv, log=tmp_path / f"{rank}.log",
            env={**env, PHASE: phase, FILE: str(signs[rank])},
        )
        for rank, env in enumerate(tf_configs(2))
    ]  # fmt: skip
    workers[0].wait_for(lambda: all(sign.exists() for sign in signs))
    workers[victim].send(signal.SIGKILL)
    killed = time.monotonic()
    output = workers[1 - victim].expect(138, timeout=30)
    assert time.monotonic() - killed < LEAVE_SECONDS
    assert f"lost {'rank 1' if victim else 'chief'} (127.0.0.1:" in output
    if victim:
        assert status(tmp_path / "run")["exit_code"] == 138
        assert "connection closed" in status(tmp_path / "run")["reason"]


def test_a_local_cluster_that_loses_a_worker_is_restarted_and_ends_with_0(
    dataset: Dataset, tmp_path: Path, start: Any
) -> None:
    output = tmp_path / "run"
    argv = flags(
        dataset, output, steps=60, checkpoint_every=20, steps_per_call=1, jit="off",
        task="tests.recording:Recording",
    )  # fmt: skip
    argv += ["--workers", "2", "--max-restarts", "1"]
    unhurried = {FILE: str(tmp_path / "rows"), PACE: "0.05"}
    parent = start(run_main, argv, env=unhurried, log=tmp_path / "log")
    parent.wait_for(lambda: any((output / "checkpoints").glob("*/COMMIT.json")))
    os.kill(status(output)["workers"][1]["pid"], signal.SIGKILL)
    said = parent.expect(0)
    assert "castell: worker 1 was killed by SIGKILL; restart 1 of 1 in 0.5 s" in said
    assert "resuming" in said
    assert (status(output)["state"], status(output)["step"]) == ("completed", 60)


def test_a_local_cluster_without_restarts_says_how_to_go_on_and_writes_the_chiefs_end(
    dataset: Dataset, tmp_path: Path, start: Any
) -> None:
    output = tmp_path / "run"
    argv = flags(
        dataset, output, steps=600, steps_per_call=1, jit="off", task="tests.recording:Recording"
    )
    unhurried = {FILE: str(tmp_path / "rows"), PACE: "0.05"}
    parent = start(run_main, [*argv, "--workers", "2"], env=unhurried, log=tmp_path / "log")
    parent.wait_for(lambda: status(output).get("state") == "running")
    os.kill(status(output)["workers"][0]["pid"], signal.SIGKILL)
    said = parent.expect(138).splitlines()
    assert "worker 0 was killed by SIGKILL" in said
    assert "run the same command again to go on from the last checkpoint" in said[-1]
    end = status(output)
    assert (end["state"], end["exit_code"]) == ("failed", 138)
    assert end["reason"] == "worker 0 was killed by SIGKILL"
