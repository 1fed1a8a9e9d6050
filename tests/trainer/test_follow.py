"""The evaluator of a cluster, as a process beside the run (kubeflow/trainer#1139)."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.runs import flags, run_main, status
from tests.workers import processes
from trainer.data.dataset import Dataset

EVALUATOR = {
    "TF_CONFIG": json.dumps(
        {"cluster": {"chief": ["127.0.0.1:1"]}, "task": {"type": "evaluator", "index": 0}}
    )
}


def lines(path: Path, split: str = "eval") -> dict[int, dict[str, float]]:
    """The figures of each step."""
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return {line.pop("step"): line for line in found if line.pop("split") == split}


def test_every_checkpoint_is_evaluated_while_the_run_goes_on(
    start: Any, dataset: Dataset, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    argv = flags(dataset, run, keep_checkpoints=9, best_metric="auc")
    evaluator = start(run_main, argv, env=EVALUATOR, log=tmp_path / "evaluator.log")
    start(run_main, argv, log=tmp_path / "chief.log").expect(0)
    said = evaluator.expect(0)
    assert "an evaluator works alone" in said
    assert "has ended (completed), all of it is evaluated" in said
    figures = lines(run / "evaluations.jsonl")
    assert list(figures) == [100, 200, 300, 400]
    assert all({"loss", "auc"} <= line.keys() for line in figures.values())
    # The chief's files are the chief's.
    assert lines(run / "metrics.jsonl") == {}
    assert list((run / "tensorboard" / "eval_evaluator").glob("events.*"))
    (best,) = json.loads((run / "checkpoints" / "best.json").read_text())
    assert best["step"] == max(figures, key=lambda step: figures[step]["auc"])
    assert best["metric"] == "auc"


@pytest.fixture(scope="module")
def evaluated(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that evaluates itself, with averages of its weights."""
    run = tmp_path_factory.mktemp("evaluated") / "run"
    changes = {"keep_checkpoints": 9, "eval_every": 100, "ema_decay": 0.9, "steps": 200}
    with processes() as start:
        argv = flags(dataset, run, **changes)
        start(run_main, argv, log=run.with_suffix(".log")).expect(0)
    return run


def test_its_figures_are_those_of_the_run(
    start: Any, dataset: Dataset, evaluated: Path, tmp_path: Path
) -> None:
    before = (evaluated / "checkpoints" / "best.json").read_bytes()
    argv = flags(dataset, evaluated, steps=200)
    start(run_main, argv, env=EVALUATOR, log=tmp_path / "log").expect(0)
    theirs, own = lines(evaluated / "metrics.jsonl"), lines(evaluated / "evaluations.jsonl")
    assert list(theirs) == list(own) == [100, 200]
    for step, line in theirs.items():
        assert own[step] == pytest.approx(line, abs=1e-6)
    assert (evaluated / "checkpoints" / "best.json").read_bytes() == before
    # A second one finds nothing new.
    said = start(run_main, argv, env=EVALUATOR, log=tmp_path / "again").expect(0)
    assert "evaluator  eval" not in said
    assert list(lines(evaluated / "evaluations.jsonl")) == [100, 200]


def test_a_run_that_never_appears_ends_it_with_138(
    start: Any, dataset: Dataset, tmp_path: Path
) -> None:
    argv = flags(dataset, tmp_path / "run", startup_deadline_seconds=1)
    said = start(run_main, argv, env=EVALUATOR, log=tmp_path / "log").expect(138)
    assert "castell: error: no run has begun in" in said
    assert not (tmp_path / "run").exists()


def test_a_stop_ends_it_with_143(start: Any, dataset: Dataset, tmp_path: Path) -> None:
    """spd#677: while it evaluates or waits, the run goes on without it."""
    run = tmp_path / "run"
    argv = flags(dataset, run, steps=100_000, checkpoint_every=50, steps_per_call=50)
    chief = start(run_main, argv, log=tmp_path / "chief.log")
    evaluator = start(run_main, argv, env=EVALUATOR, log=tmp_path / "evaluator.log")
    evaluator.wait_for((run / "evaluations.jsonl").exists)
    evaluator.send(signal.SIGTERM)
    assert "told to stop" in evaluator.expect(143, timeout=20)
    step = status(run)["step"]
    chief.wait_for(lambda: status(run)["step"] > step)
    chief.send(signal.SIGTERM)
    chief.expect(143)


def test_a_metric_that_is_not_there_is_told(start: Any, dataset: Dataset, tmp_path: Path) -> None:
    run = tmp_path / "run"
    argv = flags(dataset, run, steps=20, best_metric="aucc")
    start(run_main, argv, log=tmp_path / "chief.log").expect(0)
    said = start(run_main, argv, env=EVALUATOR, log=tmp_path / "log").expect(2)
    assert "best_metric (aucc) is no figure of an evaluation, did you mean 'auc'" in said


def test_a_configuration_that_is_none_is_one_line(
    start: Any, dataset: Dataset, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    (run / "dataset").mkdir(parents=True)
    for name in ("manifest.json", "statistics.json"):
        shutil.copy(Path(dataset.path) / name, run / "dataset")
    (run / "config.json").write_text(json.dumps({"output": "run", "steps": -1}))
    said = start(run_main, flags(dataset, run), env=EVALUATOR, log=tmp_path / "log").expect(2)
    (line,) = [line for line in said.splitlines() if "error" in line]
    assert "config.json is damaged (steps (-1): input should be greater than 0): choose" in line
    assert "Traceback" not in said
