"""Reported faults of checkpoints and stops: what must hold (start and end: test_runs.py)."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np

from tests.runs import TOLERANCE, cluster, flags, run_main, status, weights
from tests.trainer.run.disks import small_disk
from tests.trainer.run.saving import restore_under, run, save_steps
from tests.workers import processes, tf_configs
from trainer.data.dataset import Dataset
from trainer.run import commits


def test_every_worker_restores_the_same_files_and_the_chief_saves_alone(tmp_path: Path) -> None:
    """TF#45898, TF#38635: no worker but the chief writes, and none needs another to restore."""
    directory = tmp_path / "checkpoints"
    run(save_steps, str(directory), [30], 3, log=tmp_path / "log")
    with processes() as start:
        workers = [
            start(restore_under, str(directory), "multi_worker", env=env, log=tmp_path / str(rank))
            for rank, env in enumerate(tf_configs(2))
        ]
        for worker in reversed(workers):
            worker.expect(0)


def data_file(output: Path, step: int) -> Path:
    return next((output / "checkpoints" / commits.step_name(step)).glob("variables.data-*"))


def test_a_run_survives_truncation_and_loss_of_its_newest_on_another_replica_count(
    dataset: Dataset, tmp_path: Path, start: Any, undisturbed: Any
) -> None:
    """trainer#999 and what follows it: two workers, then two devices of one, then one."""
    output = tmp_path / "run"
    for worker in cluster(start, flags(dataset, output), tmp_path / "logs"):
        worker.expect(0)

    os.truncate(data_file(output, 400), 100)
    shutil.rmtree(output / "checkpoints" / commits.step_name(300))
    log = start(run_main, flags(dataset, output, cpu_replicas=2), log=tmp_path / "2").expect(0)
    assert "step-00000400 is skipped: variables.data" in log
    assert "from step 200" in log
    assert np.abs(weights(start, output) - undisturbed).max() <= TOLERANCE

    data_file(output, 400).unlink()
    log = start(run_main, flags(dataset, output), log=tmp_path / "1").expect(0)
    assert "from step 300" in log
    assert np.abs(weights(start, output) - undisturbed).max() <= TOLERANCE


def test_a_stop_is_heeded_while_the_run_evaluates(
    dataset: Dataset, tmp_path: Path, start: Any
) -> None:
    """spd#677: SIGTERM was looked at between training steps only."""
    output = tmp_path / "run"
    argv = flags(dataset, output, log_every=10, eval_every=10, eval_batch=2)
    chief, worker = cluster(start, argv, tmp_path / "logs")

    def logged() -> list[tuple[int, str]]:
        path = output / "metrics.jsonl"
        found = path.read_text().splitlines() if path.exists() else []
        return [(line["step"], line["split"]) for line in map(json.loads, found)]

    chief.wait_for(lambda: (10, "train") in logged())  # its evaluation has just begun
    worker.send(signal.SIGTERM)
    for one in (chief, worker):
        one.expect(143, timeout=30)
    assert logged() == [(10, "train")]
    assert status(output)["state"] == "preempted"
    assert commits.steps_in(str(output / "checkpoints")) == [10]


def test_a_full_disk_costs_checkpoints_until_there_is_room_and_the_last_must_be_written(
    dataset: Dataset, tmp_path: Path, start: Any
) -> None:
    with small_disk(tmp_path / "disk") as mounted:
        if not mounted:
            return
        output = tmp_path / "disk" / "run"
        ballast = tmp_path / "disk" / "ballast"
        checkpoints = str(output / "checkpoints")
        argv = flags(
            dataset, output, steps=100_000, steps_per_call=5, checkpoint_every=50, hidden="64",
            log_every=100_000,
        )  # fmt: skip
        worker = start(run_main, argv, log=tmp_path / "log")
        worker.wait_for(lambda: len(commits.steps_in(checkpoints)) > 1)
        ballast.write_bytes(bytes(shutil.disk_usage(tmp_path / "disk").free))
        worker.wait_for(lambda: "No space left on device; step" in worker.output)
        assert "training goes on and the next save tries again" in worker.output
        kept = commits.steps_in(checkpoints)[0]
        assert commits.commit_at(checkpoints, kept).step == kept
        ballast.unlink()
        worker.wait_for(lambda: commits.steps_in(checkpoints)[-1] > kept + 200)

        worker.send(signal.SIGSTOP)
        ballast.write_bytes(bytes(shutil.disk_usage(tmp_path / "disk").free))
        worker.send(signal.SIGTERM)
        worker.send(signal.SIGCONT)
        log = worker.expect(1)
        assert (
            log.rstrip().splitlines()[-1].endswith("could not be written: No space left on device")
        )
        assert commits.latest(checkpoints, print) is not None


def test_a_checkpoint_of_another_run_is_refused_by_its_keys(
    dataset: Dataset, tmp_path: Path, start: Any
) -> None:
    """What is copied into a run directory is not taken for its own."""
    for name, seed in (("one", 1), ("other", 2)):
        argv = flags(dataset, tmp_path / name, steps=20, seed=seed)
        start(run_main, argv, log=tmp_path / f"{name}.log").expect(0)
    checkpoints = tmp_path / "one" / "checkpoints"
    shutil.rmtree(checkpoints)
    shutil.copytree(tmp_path / "other" / "checkpoints", checkpoints)
    argv = flags(dataset, tmp_path / "one", steps=40, seed=1)
    for worker in cluster(start, argv, tmp_path / "logs"):
        log = worker.expect(2)
        assert "belongs to another run: seed is 2 there and 1 here" in log
        assert "Traceback" not in log


def test_a_warm_start_takes_the_best_weights_of_another_run(
    dataset: Dataset, tmp_path: Path, start: Any
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    argv = flags(dataset, first, steps=40, eval_every=20)
    start(run_main, argv, log=tmp_path / "1").expect(0)
    argv = flags(dataset, second, steps=1, init_from=first, learning_rate=1e-12, weight_decay=0)
    log = start(run_main, argv, log=tmp_path / "2").expect(0)
    assert re.search(r"initial weights: (\d+) of \1 from .* \(step 40, best loss", log)
    np.testing.assert_allclose(weights(start, second), weights(start, first), atol=1e-6)
