"""Actions in whole runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.runs import cluster, flags, run_main, status
from trainer.data.dataset import Dataset
from trainer.run import commits, marks

OWN = "tests.trainer.actions.own_actions"


def test_early_stopping_ends_all_workers_and_holds_when_started_again(
    start: Any, dataset: Dataset, tmp_path: Path
) -> None:
    run, logs = tmp_path / "run", tmp_path / "logs"
    changes: dict[str, Any] = {
        "eval_every": 20, "early_stop_evals": 2, "early_stop_delta": 9, "steps_per_call": 20,
        "log_every": 20, "actions": f"{OWN}:shout", "profile": "20-40",
    }  # fmt: skip
    chief, worker = cluster(start, flags(dataset, run, **changes), logs)
    said = chief.expect(0)
    assert "own action" not in worker.expect(0)
    assert "own action: eval 20 ['accuracy', 'auc', 'loss']" in said
    reason = "stopped early: no better loss than "
    assert f"is trained: 60 steps ({reason}" in said
    assert status(run)["state"] == "completed"
    assert commits.steps_in(str(run / "checkpoints"))[-1] == 60
    (best,) = marks.read(str(run / "checkpoints"))
    assert (best.step, best.metric) == (60, "loss")

    # What else a run is seen by.
    assert "profile: steps 20 to 40 are traced" in said
    assert list((run / "tensorboard" / "plugins" / "profile").glob("*/*.xplane.pb"))
    train, evaluation = map(json.loads, (run / "metrics.jsonl").read_text().splitlines()[:2])
    assert train["rss_bytes"] > 1e8
    assert {"allreduce_seconds", "input_wait_fraction", "step_seconds"} <= train.keys()
    assert (evaluation["split"], evaluation["step"]) == ("eval", 20)

    again = start(run_main, flags(dataset, run, **changes), log=tmp_path / "again.log").expect(0)
    assert f"is trained: 60 steps (had {reason}" in again
    assert commits.steps_in(str(run / "checkpoints"))[-1] == 60

    patient = flags(dataset, run, **{**changes, "early_stop_evals": 4})
    more = start(run_main, patient, log=tmp_path / "more.log").expect(0)
    assert "is trained: 100 steps (stopped early" in more


def test_an_action_that_raises_ends_the_run_with_its_traceback(
    start: Any, dataset: Dataset, tmp_path: Path
) -> None:
    argv = flags(dataset, tmp_path / "run", actions=f"{OWN}:fail")
    said = start(run_main, argv, log=tmp_path / "log").expect(1)
    assert "RuntimeError: the action's own mistake" in said
    assert 'own_actions.py", line' in said
    assert status(tmp_path / "run")["state"] == "failed"


def test_a_best_metric_that_is_not_there_is_refused_by_every_worker(
    start: Any, dataset: Dataset, tmp_path: Path
) -> None:
    argv = flags(dataset, tmp_path / "run", eval_every=20, best_metric="acc")
    for worker in cluster(start, argv, tmp_path / "logs"):
        assert "best_metric (acc) is no figure of an evaluation" in worker.expect(2)
    assert not (tmp_path / "run" / "config.json").exists()
