"""What a Task's method must return is said when it returns something else, in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.runs import flags, run_main
from trainer.data.dataset import Dataset


@pytest.mark.parametrize(
    ("task", "says"),
    [
        ("NoFeatures", "preprocess() returned None: return a dictionary of tensors"),
        ("OneTensor", "preprocess() returned a SymbolicTensor: return a dictionary of tensors"),
        ("LostRows", "it must keep one entry a row"),
        ("NoStep", "train_step returned None: return a dictionary with one trainer.task.Sums"),
        ("NoLoss", "objective 'loss': the loss returned None: return one value a row"),
        ("Penalties", "penalty() returned shape (3,): return one number"),
        ("NoServing", "serve() returned a SymbolicTensor: return a dictionary of tensors"),
        ("Columns", "'probability' has shape (64, 1), evaluating a binary label needs (64,): take"),
        ("Steps", "metrics(): 'step' is a name that the loop itself writes"),
    ],
)
def test_a_slip_is_told_with_its_method(
    dataset: Dataset, tmp_path: Path, start: Any, task: str, says: str
) -> None:
    output = tmp_path / "run"
    evaluated = {"eval_every": 200} if task == "Steps" else {}
    argv = flags(dataset, output, steps=200, task=f"tests.slips:{task}", **evaluated)
    log = start(run_main, argv, log=tmp_path / "log").expect(2)
    assert says in log
    assert "Traceback" not in log
    assert not list(output.glob("checkpoints/*"))


def test_a_serve_that_branches_on_tensors_is_none(
    dataset: Dataset, tmp_path: Path, start: Any
) -> None:
    argv = flags(dataset, tmp_path / "run", steps=10, task="tests.slips:Branching")
    start(run_main, argv, log=tmp_path / "log").expect(0)


def test_what_cannot_be_loaded_leaves_no_run_behind(
    dataset: Dataset, tmp_path: Path, start: Any
) -> None:
    output = tmp_path / "run"
    for change in ({"init_from": str(tmp_path)}, {"actions": "tests.slips:shout"}):
        start(run_main, flags(dataset, output, **change), log=tmp_path / "log").expect(2)
        assert not (output / "config.json").exists()
    start(run_main, flags(dataset, output, steps=5), log=tmp_path / "log").expect(0)


def test_beginning_anew_beside_damaged_checkpoints_is_said(
    dataset: Dataset, tmp_path: Path, start: Any
) -> None:
    output = tmp_path / "run"
    start(run_main, flags(dataset, output, steps=20), log=tmp_path / "log").expect(0)
    for commit in output.glob("checkpoints/*/COMMIT.json"):
        commit.unlink()
    again = start(run_main, flags(dataset, output, steps=20), log=tmp_path / "again").expect(0)
    assert "whole: it begins anew at step 0" in again


def test_a_run_may_be_named_as_a_url(dataset: Dataset, tmp_path: Path, start: Any) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    start(run_main, flags(dataset, first, steps=20), log=tmp_path / "log").expect(0)
    argv = flags(dataset, second, steps=5, init_from=f"file://{first}")
    assert "initial weights: " in start(run_main, argv, log=tmp_path / "log").expect(0)
