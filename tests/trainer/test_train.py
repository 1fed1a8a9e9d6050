"""Whole runs in real processes: workers started here, doing it again, differing workers."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import numpy as np

from tests.runs import TOLERANCE, cluster, flags, run_main, status, weights
from tests.workers import tf_configs
from trainer.data.dataset import Dataset


def test_workers_started_here_give_the_weights_of_one(
    dataset: Dataset, tmp_path: Path, start: Any, undisturbed: Any
) -> None:
    output = tmp_path / "run"
    argv = [*flags(dataset, output), "--workers", "2"]
    log = start(run_main, argv, log=tmp_path / "log").expect(0)
    assert "multi_worker" in log
    assert np.abs(weights(start, output) - undisturbed).max() <= TOLERANCE


def test_doing_it_again_does_nothing(dataset: Dataset, tmp_path: Path, start: Any) -> None:
    output = tmp_path / "run"
    argv = flags(dataset, output, steps=20)
    start(run_main, argv, log=tmp_path / "1").expect(0)
    log = start(run_main, argv, log=tmp_path / "2").expect(0)
    assert "has done 20 of 20 steps" in log
    log = start(run_main, flags(dataset, output, steps=40), log=tmp_path / "3").expect(0)
    assert "from step 20" in log


def test_a_run_that_is_made_longer_says_what_that_does_to_a_cosine(
    dataset: Dataset, tmp_path: Path, start: Any
) -> None:
    output, cosine = tmp_path / "run", {"schedule": "cosine", "learning_rate": 0.01}
    log = start(
        run_main, flags(dataset, output, steps=20, warmup_steps=20, **cosine), log=tmp_path / "1"
    ).expect(0)
    assert "warmup_steps (20) is all of the run" in log
    longer = flags(dataset, output, steps=40, warmup_steps=20, **cosine)
    log = start(run_main, longer, log=tmp_path / "2").expect(0)
    assert "was to end at step 20, and now at 40: the cosine stretches" in log
    assert "the rate goes from 0.01 to 0.01 at step 20" in log


def test_workers_of_different_configuration_do_not_start(
    dataset: Dataset, tmp_path: Path, start: Any
) -> None:
    envs = tf_configs(2)
    argv = [flags(dataset, tmp_path / "run", seed=seed) for seed in (0, 1)]
    workers = [
        start(run_main, argv[rank], env=envs[rank], log=tmp_path / str(rank)) for rank in (0, 1)
    ]
    for worker in workers:
        assert "configuration" in worker.expect(2)


def test_a_loss_that_stays_non_finite_ends_with_3(
    dataset: Dataset, tmp_path: Path, start: Any
) -> None:
    output = tmp_path / "run"
    argv = flags(dataset, output, steps_per_call=50, optimizer="sgd", learning_rate="1e30")
    log = start(run_main, argv, log=tmp_path / "log").expect(3)
    assert "steps in a row up to step 150: lower --learning-rate" in log
    assert "Traceback" not in log
    assert (status(output)["state"], status(output)["exit_code"]) == ("failed", 3)


def test_a_loss_that_is_no_number_on_the_first_batch_is_told_with_its_method(
    dataset: Dataset, tmp_path: Path, start: Any
) -> None:
    argv = flags(dataset, tmp_path / "run", task="tests.odd_tasks:Hopeless")
    for worker in cluster(start, argv, tmp_path / "logs"):
        log = worker.expect(2)
        assert "objective 'loss': the loss of 32 of 32 rows of the first batch is no number" in log
        assert "Traceback" not in log


def test_a_call_longer_than_the_run_takes_no_more_memory(
    dataset: Dataset, tmp_path: Path, start: Any
) -> None:
    argv = flags(dataset, tmp_path / "run", steps=3, steps_per_call=10**9)
    start(run_main, argv, log=tmp_path / "log").expect(0)


def test_a_task_that_wants_a_column_that_is_not_there_leaves_no_run_behind(
    dataset: Dataset, tmp_path: Path, start: Any
) -> None:
    output = tmp_path / "run"
    argv = flags(dataset, output, steps=5, task="tests.odd_tasks:Choosy")
    log = start(run_main, argv, log=tmp_path / "log").expect(2)
    assert "the data has no column 'x2' (it has x0, x1, n, color, y)" in log
    assert "Traceback" not in log
    start(run_main, flags(dataset, output, steps=5), log=tmp_path / "again").expect(0)


def test_two_runs_do_not_share_a_directory(dataset: Dataset, tmp_path: Path, start: Any) -> None:
    output = tmp_path / "run"
    long = flags(dataset, output, steps=100_000, steps_per_call=1)
    first = start(run_main, long, log=tmp_path / "first")
    first.wait_for(lambda: status(output)["step"] > 0)
    log = start(run_main, long, log=tmp_path / "second").expect(2)
    assert "another process is training into it" in log
    first.send(signal.SIGTERM)
    first.expect(143)
    assert status(output)["state"] == "preempted"
