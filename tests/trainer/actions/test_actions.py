"""What follows from the figures of an evaluation."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from trainer.actions import Report, check_metric, check_names, find_own, make_actions
from trainer.actions.hypertune import hypertune
from trainer.actions.metric import mode_of
from trainer.config import TrainConfig
from trainer.data.dataset import Dataset
from trainer.errors import UsageError
from trainer.run import marks
from trainer.run.directory import RunDirectory
from trainer.run.marks import Mark

NAN = float("nan")


def make_config(output: Path, **changes: Any) -> TrainConfig:
    return TrainConfig.model_validate({"output": str(output), "eval_every": 10, **changes})


@dataclass
class Chief:
    """A run directory, what actions did to it, and the actions themselves."""

    run: Path
    changes: dict[str, Any]
    start: int = 0
    saved: list[int] = field(default_factory=list)
    marked: list[tuple[int, str, float, str]] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        (self.run / "checkpoints").mkdir(parents=True, exist_ok=True)
        config = make_config(self.run, **self.changes)
        self.actions = make_actions(
            config, RunDirectory(str(self.run)), Dataset.nothing(),
            replicas_here=1, start=self.start, mine=find_own(config),
            mark=lambda *mark: self.marked.append(mark), stop=self.stopped.append,
            say=self.said.append,
        )  # fmt: skip

    def evaluated(self, step: int, split: str = "eval", **metrics: float) -> None:
        with (self.run / "metrics.jsonl").open("a") as file:
            shown = {k: v if math.isfinite(v) else None for k, v in metrics.items()}
            file.write(json.dumps({"step": step, "split": split, **shown}) + "\n")
        report = Report(step, split, metrics, lambda: self.saved.append(step), self.stopped.append)
        for action in self.actions:
            action(report)


@pytest.mark.parametrize(
    ("metric", "mode"),
    [("loss", "min"), ("log_loss", "min"), ("rmse", "min"), ("mean_absolute_error", "min"),
     ("val/mae", "min"), ("auc", "max"), ("accuracy", "max"), ("log_likelihood", "max"),
     ("image", "max"), ("loss/generator", "min"), ("perplexity", "min")],
)  # fmt: skip
def test_which_way_is_better_goes_by_the_name(tmp_path: Path, metric: str, mode: str) -> None:
    assert mode_of(make_config(tmp_path, best_metric=metric)) == mode
    assert mode_of(make_config(tmp_path, best_metric=metric, best_mode="max")) == "max"


def test_the_best_so_far_is_saved_and_marked(tmp_path: Path) -> None:
    chief = Chief(tmp_path, {"best_metric": "auc"})
    chief.evaluated(5, split="train", loss=1.0)
    for step, auc in ((10, 0.6), (20, 0.5), (30, NAN), (40, 0.6), (50, 0.7)):
        chief.evaluated(step, auc=auc, loss=1.0)
    assert chief.saved == [10, 50]
    assert chief.marked == [(10, "auc", 0.6, "max"), (50, "auc", 0.7, "max")]


def test_several_best_are_kept(tmp_path: Path) -> None:
    chief = Chief(tmp_path, {"keep_best": 2})
    for step, loss in ((10, 0.5), (20, 0.6), (30, 0.7), (40, 0.55)):
        chief.evaluated(step, loss=loss)
    assert chief.saved == [10, 20, 40]
    assert Chief(tmp_path, {"keep_best": 0}).actions == ()


def test_a_resumed_run_knows_what_was_best(tmp_path: Path) -> None:
    checkpoints = tmp_path / "checkpoints"
    for step in (10, 30):
        (checkpoints / f"step-{step:08d}").mkdir(parents=True)
    known = [Mark(30, "loss", 0.2), Mark(10, "loss", 0.5), Mark(20, "loss", 0.6)]
    marks.write(str(checkpoints), known)
    # From step 20, whose checkpoint is gone, and before step 30, which will come again.
    chief = Chief(tmp_path, {"keep_best": 3}, start=20)
    assert marks.read(str(checkpoints)) == [Mark(10, "loss", 0.5)]
    chief = Chief(tmp_path, {}, start=20)
    chief.evaluated(30, loss=0.6)
    chief.evaluated(40, loss=0.4)
    assert chief.saved == [40]
    # Marks of another metric say nothing.
    chief = Chief(tmp_path, {"best_metric": "auc"}, start=20)
    chief.evaluated(30, auc=0.1)
    assert chief.saved == [30]


def test_a_crash_between_the_save_and_the_mark_forgets_nothing(tmp_path: Path) -> None:
    first = Chief(tmp_path, {})
    first.evaluated(10, loss=0.5)
    first.evaluated(20, loss=0.3)
    assert Chief(tmp_path, {}, start=20).marked == [(20, "loss", 0.3, "min")]


def test_a_best_metric_that_nothing_looks_at_is_said(tmp_path: Path) -> None:
    said = Chief(tmp_path / "run", {"best_metric": "auc", "eval_every": None}).said
    assert [line.split(" marks")[0] for line in said] == ["castell: warning: best_metric (auc)"]
    assert Chief(tmp_path / "run", {"best_metric": "auc"}).said == []
    assert Chief(tmp_path / "run", {"eval_every": None}).said == []


def test_an_unknown_metric_names_those_that_there_are(tmp_path: Path) -> None:
    chief = Chief(tmp_path, {"best_metric": "acc"})
    expected = (
        r"best_metric \(acc\) is no figure of an evaluation, did you mean 'auc'\?: "
        "there are loss, auc"
    )
    with pytest.raises(UsageError, match=expected):
        chief.evaluated(10, loss=0.5, auc=0.5)
    with pytest.raises(UsageError, match=expected):
        check_metric(make_config(tmp_path, best_metric="acc"), ["loss", "auc"])


def test_no_better_figure_for_long_ends_the_run(tmp_path: Path) -> None:
    chief = Chief(tmp_path, {"early_stop_evals": 3, "early_stop_delta": 0.01})
    for step, loss in ((10, 0.5), (20, 0.6), (30, 0.495), (40, 0.4), (50, 0.4), (60, NAN)):
        chief.evaluated(step, loss=loss)
    assert chief.stopped == []
    chief.evaluated(70, loss=0.395)
    assert chief.stopped == ["stopped early: no better loss than 0.4 (step 40) in 3 evaluations"]


def test_a_resumed_run_counts_on(tmp_path: Path) -> None:
    first = Chief(tmp_path, {"early_stop_evals": 3})
    for step, loss in ((10, 0.5), (20, 0.6), (30, 0.7), (40, 0.2)):
        first.evaluated(step, loss=loss)
    resumed = Chief(tmp_path, {"early_stop_evals": 3}, start=30)
    assert resumed.stopped == []
    resumed.evaluated(40, loss=0.55)
    (reason,) = resumed.stopped
    assert reason == "stopped early: no better loss than 0.5 (step 10) in 3 evaluations"


def test_a_run_that_had_stopped_early_stops_again_unless_it_gets_more_patience(
    tmp_path: Path,
) -> None:
    first = Chief(tmp_path, {"early_stop_evals": 2})
    for step, loss in ((10, 0.5), (20, 0.6), (30, 0.7)):
        first.evaluated(step, loss=loss)
    assert len(first.stopped) == 1
    again = Chief(tmp_path, {"early_stop_evals": 2}, start=30)
    assert again.stopped == [
        "had stopped early: no better loss than 0.5 (step 10) in 2 evaluations"
    ]
    assert Chief(tmp_path, {"early_stop_evals": 3}, start=30).stopped == []


def test_a_tuning_trial_reports_to_the_file_that_the_service_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "hypertune" / "output.metrics"
    monkeypatch.setenv("CLOUD_ML_HP_METRIC_FILE", str(path))
    monkeypatch.setenv("CLOUD_ML_TRIAL_ID", "7")
    chief = Chief(tmp_path / "run", {"best_metric": "auc", "keep_best": 0})
    chief.evaluated(5, split="train", loss=1.0)
    for step in range(10, 1110, 10):
        chief.evaluated(step, loss=1.0, auc=0.75)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(lines) == 100
    assert isinstance(lines[-1].pop("timestamp"), float)
    assert lines[-1] == {"global_step": "1100", "trial": "7", "auc": "0.75"}


def test_without_a_tuning_job_nothing_is_reported(tmp_path: Path) -> None:
    said: list[str] = []
    config = make_config(tmp_path)
    assert hypertune(config, {}, said.append) is None
    spec = {"cluster": {}, "task": {"type": "workerpool0", "index": 0, "trial": ""}}
    assert hypertune(config, {"CLUSTER_SPEC": json.dumps(spec)}, said.append) is None
    assert said == []
    spec["task"]["trial"] = "3"
    never = config.model_copy(update={"eval_every": None})
    assert hypertune(never, {"CLUSTER_SPEC": json.dumps(spec)}, said.append) is None
    (line,) = said
    assert "set --eval-every" in line


def test_a_users_actions_are_called_after_ours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = "tests.trainer.actions.own_actions"
    chief = Chief(tmp_path, {"actions": f"{own}:shout,{own}:stop_at_once"})
    chief.evaluated(10, loss=0.5)
    assert capsys.readouterr().out == "own action: eval 10 ['loss']\n"
    assert chief.stopped == ["seen enough"]
    assert chief.saved == [10]


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("shout", r"actions \(shout\): name a callable as pkg.module:function"),
        ("nowhere.at:all", "there is no module 'nowhere.at' on the path"),
        ("tests.nowhere:all", "there is no module 'tests.nowhere' on the path"),
        ("tests.trainer.actions.own_actions:none", "has no 'none'"),
        ("tests.trainer.actions.own_actions:NOT_CALLABLE", "is not callable"),
    ],
)
def test_an_action_that_is_not_there_is_one_line(tmp_path: Path, name: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        Chief(tmp_path, {"actions": name})


def test_names_can_be_checked_before_anything_of_the_users_runs() -> None:
    check_names(["tests.trainer.actions.own_actions:none"])
    with pytest.raises(UsageError, match=r"no module 'nowhere\.at'"):
        check_names(["nowhere.at:all"])
