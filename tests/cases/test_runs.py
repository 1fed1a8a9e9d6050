"""Reported faults of start-up, checkpoints and stops, in whole runs: what must hold."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np

from tests.datasets import make_dataset
from tests.runs import STEPS, TOLERANCE, cluster, flags, run_main, status, steps_logged, weights
from tests.workers import tf_configs
from trainer.data.dataset import Dataset


def test_a_run_ends_with_0_and_leaves_its_directory(
    dataset: Dataset, tmp_path: Path, start: Any
) -> None:
    """TF#58434, TF#38635: all workers exit 0, one artefact."""
    output = tmp_path / "run"
    for worker in cluster(start, flags(dataset, output), tmp_path / "logs"):
        worker.expect(0)
    found = status(output)
    assert (found["state"], found["step"], found["exit_code"]) == ("completed", STEPS, 0)
    assert (found["replicas"], found["strategy"]) == (2, "multi_worker")
    assert found["strategy_reason"] == "2 workers (TF_CONFIG) with 1 CPU each"
    assert [w["rank"] for w in found["workers"]] == [0, 1]
    assert steps_logged(output) == list(range(50, STEPS + 1, 50))
    assert json.loads((output / "config.json").read_text())["steps"] == STEPS
    kept = sorted(path.name for path in (output / "checkpoints").iterdir())
    assert kept == ["step-00000200", "step-00000300", "step-00000400"]
    assert list((output / "tensorboard").rglob("events.out.*"))


def test_a_killed_worker_ends_the_other_with_138_and_a_restart_makes_up_for_it(
    dataset: Dataset, tmp_path: Path, start: Any, undisturbed: Any
) -> None:
    """TF#56372, trainer#999: kill -9, restart on one worker, the weights of an undisturbed run."""
    output = tmp_path / "run"
    slow = flags(dataset, output, steps_per_call=1)
    chief, worker = cluster(start, slow, tmp_path / "logs")
    chief.wait_for((output / "checkpoints" / "step-00000100" / "COMMIT.json").exists)
    worker.send(signal.SIGKILL)
    killed = time.monotonic()
    chief.expect(138, timeout=20)
    assert time.monotonic() - killed < 5
    assert (status(output)["state"], status(output)["exit_code"]) == ("failed", 138)
    assert status(output)["generation"] == 0
    log = start(run_main, flags(dataset, output), log=tmp_path / "again").expect(0)
    assert "resuming" in log
    assert status(output)["generation"] == 1
    assert np.abs(weights(start, output) - undisturbed).max() <= TOLERANCE
    assert steps_logged(output) == list(range(50, STEPS + 1, 50))


def test_a_lost_chief_ends_the_others_with_138(
    dataset: Dataset, tmp_path: Path, start: Any
) -> None:
    output = tmp_path / "run"
    chief, worker = cluster(start, flags(dataset, output, steps_per_call=1), tmp_path / "logs")
    chief.wait_for((output / "checkpoints" / "step-00000100").exists)
    chief.send(signal.SIGKILL)
    worker.expect(138, timeout=20)


def test_sigterm_to_one_worker_saves_and_ends_all_with_143(
    dataset: Dataset, tmp_path: Path, start: Any, undisturbed: Any
) -> None:
    output = tmp_path / "run"
    workers = cluster(start, flags(dataset, output, steps_per_call=1), tmp_path / "logs")
    workers[0].wait_for(lambda: status(output)["step"] > 0)
    workers[1].send(signal.SIGTERM)
    for worker in workers:
        worker.expect(143)
    found = status(output)
    assert found["state"] == "preempted"
    assert (output / "checkpoints" / f"step-{found['step']:08d}" / "COMMIT.json").exists()
    for worker in cluster(start, flags(dataset, output), tmp_path / "logs"):
        worker.expect(0)
    assert np.abs(weights(start, output) - undisturbed).max() <= TOLERANCE


def test_a_shard_damaged_while_training_ends_every_worker_with_2(
    dataset: Dataset, tmp_path: Path, start: Any
) -> None:
    made = make_dataset(tmp_path / "data", rows=4000, shards=8)
    shard = tmp_path / "data" / made.split("train").shards[3].path
    whole = bytearray(shard.read_bytes())
    whole[-100] ^= 1
    shard.write_bytes(whole)
    workers = cluster(start, flags(made, tmp_path / "run"), tmp_path / "logs")
    logs = "".join(worker.expect(2) for worker in workers)
    assert "00003-of-00008.tfrecord is damaged" in logs
    assert "Traceback" not in logs


def test_a_missing_peer_ends_the_start_with_138(
    dataset: Dataset, tmp_path: Path, start: Any
) -> None:
    """TF#35878, TF#37108: nobody waits for ever without a word."""
    env = tf_configs(2)[0]
    argv = flags(dataset, tmp_path / "run", startup_deadline_seconds=2)
    log = start(run_main, argv, env=env, log=tmp_path / "log").expect(138)
    assert "rank 1" in log
    assert "Traceback" not in log


def test_a_task_that_runs_an_op_at_import_trains_on_two_workers(
    dataset: Dataset, tmp_path: Path, start: Any
) -> None:
    """TF#55178: "Collective ops must be configured at program startup"."""
    argv = flags(dataset, tmp_path / "run", steps=20, task="tests.odd_tasks:Eager")
    for worker in cluster(start, argv, tmp_path / "logs"):
        worker.expect(0)


def test_a_fault_of_one_worker_is_the_end_that_status_tells(
    dataset: Dataset, tmp_path: Path, start: Any
) -> None:
    """Not the chief's 138, which a platform would answer with a restart."""
    output = tmp_path / "run"
    argv = flags(dataset, output, workers=2, steps=20, task="tests.odd_tasks:OneFails")
    log = start(run_main, argv, log=tmp_path / "log").expect(1)
    assert "ValueError: only this worker" in log
    found = status(output)
    assert (found["state"], found["exit_code"]) == ("failed", 1)
    assert found["reason"] == "worker 1 ended with 1"
