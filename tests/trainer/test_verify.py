"""`--verify-scaling`: several replicas are compared with one before anybody trusts them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.runs import cluster, flags, run_main
from trainer.__main__ import main
from trainer.config import TrainConfig
from trainer.data.dataset import Dataset
from trainer.verify import Difference, Trained, compare, default_tolerance

STEPS = 12


def asked(dataset: Dataset, output: Path, **changes: Any) -> list[str]:
    changes = {"heartbeat_timeout_seconds": 30, **changes}  # nobody is lost here
    return [*flags(dataset, output, **changes), "--verify-scaling", str(STEPS)]


def test_a_right_task_passes_on_workers_started_here_and_nothing_is_written(
    dataset: Dataset, tmp_path: Path, start: Any
) -> None:
    argv = asked(dataset, tmp_path / "run", dropout=0.4, workers=2)
    log = start(run_main, argv, log=tmp_path / "log").expect(0)
    assert "12 steps of 64 rows, the same ones, on 1 replica and on 2 (multi_worker):" in log
    assert "in model/" in log
    assert "ok: 2 replicas learn what one does" in log
    assert "(tolerance 0.0001)" in log
    assert "without drawing at random: model/dropout (replicas draw" in log
    assert not (tmp_path / "run").exists()


def test_a_loss_that_depends_on_the_rows_of_a_replica_is_caught_in_a_cluster(
    dataset: Dataset, tmp_path: Path, start: Any
) -> None:
    argv = asked(dataset, tmp_path / "run", task="tests.scaling_tasks:Centred")
    chief, other = cluster(start, argv, tmp_path / "logs")
    assert "2 replicas do not learn what one does: after 12 steps model/" in chief.expect(1)
    assert "castell: error" not in other.expect(0)  # one line is enough
    assert "Traceback" not in chief.output + other.output


def test_a_normalisation_that_is_not_synchronized_is_caught(
    dataset: Dataset, tmp_path: Path, start: Any
) -> None:
    output = tmp_path / "run"
    argv = asked(
        dataset, output, task="tests.scaling_tasks:Normalized", cpu_replicas=2,
        batch_norm="averaged",
    )  # fmt: skip
    log = start(run_main, argv, log=tmp_path / "log").expect(1)
    (line,) = [line for line in log.splitlines() if "castell: error: " in line]
    assert "is not synchronized" in line
    assert not output.exists()


def test_a_task_that_feeds_itself_is_compared_too(tmp_path: Path, start: Any) -> None:
    argv = [
        "--task", "trainer.examples.policy_gradient:CartPole", "--output", str(tmp_path / "run"),
        "--steps", "50", "--global-batch", "8", "--cpu-replicas", "2", "--verify-scaling", "2",
    ]  # fmt: skip
    assert "2 steps of 8 rows" in start(run_main, argv, log=tmp_path / "log").expect(0)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--verify-scaling", "5"], "this run has one replica, there is nothing to compare"),
        (["--verify-scaling", "0", "--cpu-replicas", "2"], "--verify-scaling (0) must be at least"),
        (["--verify-tolerance", "1"], "goes with --verify-scaling K"),
        (
            ["--verify-scaling", "5", "--verify-tolerance", "-1", "--cpu-replicas", "2"],
            "--verify-tolerance (-1) must be above 0",
        ),
    ],
)
def test_nothing_to_compare(
    dataset: Dataset,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    more: list[str],
    words: str,
) -> None:
    assert main([*flags(dataset, tmp_path / "run"), *more]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line


def result(loss: float, *values: float) -> Trained:
    return Trained(loss, [("a", np.array(values)), ("none", np.zeros(0))], ())


def test_what_is_no_number_is_a_difference() -> None:
    right = result(0.5, 1.0, 2.0)
    assert not compare(right, right).exceeds(1e-9)
    assert compare(right, result(0.5, 1.0, float("nan"))).exceeds(1e9)
    assert compare(right, result(float("nan"), 1.0, 2.0)).exceeds(1e9)
    assert compare(right, result(0.5, 1.0, 2.5)) == Difference(0.0, 0.5, "a")


def test_a_loss_that_is_off_is_a_difference_even_if_the_weights_agree() -> None:
    """Adam's updates don't show a loss that is divided by the number of rows."""
    assert compare(result(0.5, 1.0), result(0.25, 1.0)) == Difference(0.25, 0.0, "none")
    assert compare(result(1000.0, 1.0), result(1000.1, 1.0)).loss == pytest.approx(1e-4)


def test_sixteen_bits_may_differ_more() -> None:
    def tolerance(**keys: Any) -> float:
        return default_tolerance(TrainConfig(output="run", **keys))

    assert tolerance() == 1e-4
    assert tolerance(precision="bfloat16") == tolerance(reduce_dtype="bfloat16") == 5e-3
