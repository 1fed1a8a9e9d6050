"""What a run would meet on a TPU, told without one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipelines.cli import main as castell
from tests.trainer.check import tasks
from trainer.__main__ import main
from trainer.check.report import Report
from trainer.check.tpu import examine
from trainer.cluster.spec import ClusterSpec
from trainer.config import TrainConfig
from trainer.data.dataset import Dataset


def check(dataset: Dataset, spec: ClusterSpec | None = None, **keys: Any) -> Report:
    values = {"output": "run", "steps": 10, "global_batch": 64, "precision": "bfloat16", **keys}
    if isinstance(task := values.get("task"), type):
        values["task"] = f"{task.__module__}:{task.__name__}"
    return examine(TrainConfig(data=dataset.path, **values), spec or ClusterSpec())


def said(findings: Any) -> str:
    return "\n".join(map(str, findings))


def test_every_op_that_a_tpu_does_not_take_is_named_with_its_line(dataset: Dataset) -> None:
    report = check(dataset, task=tasks.Everything)
    source = Path(tasks.__file__).read_text().splitlines()
    found = {}
    for finding in report.problems:
        assert finding.where is not None
        method, place = finding.where.rstrip(")").split(" (")
        file, number = place.rsplit(":", 1)
        assert file == "tests/trainer/check/tasks.py"
        found[source[int(number) - 1].rpartition("# ")[2]] = (finding.about, method)
    assert found == {
        "string": ("AsString", "Everything.loss"),
        "string in a loop": ("AsString", "Everything.loss, body"),
        "python": ("EagerPyFunc", "Everything.loss"),
        "table": ("LookupTableFindV2", "Everything.loss"),
        "mask in a branch": ("Where", "Everything.loss, masked"),
        "where": ("Where", "Everything.loss"),
        "unique": ("Unique", "Everything.loss"),
        "sparse": ("SparseToDense", "Everything.loss"),
        "float64": ("Cast", "Everything.loss"),
        "file": ("ReadFile", "Everything.loss"),
    }
    (note,) = [finding for finding in report.notes if finding.where]
    assert note.about == "RandomUniform"  # works, and draws something else


def test_what_xla_does_not_know_and_no_rule_speaks_of_is_named_by_lowering(
    dataset: Dataset,
) -> None:
    (found,) = check(dataset, task=tasks.Unheard).problems
    assert str(found).startswith(
        "StatelessRandomGammaV3 in Unheard.loss (tests/trainer/check/tasks.py:"
    )
    assert "unknown to XLA" in str(found)


def test_the_tasks_that_come_with_the_trainer_are_ready(dataset: Dataset) -> None:
    report = check(dataset, options={"hidden": "128"}, microbatches=4, ema_decay=0.9, clip_norm=1)
    assert report.problems == []
    assert "kernels of width 1 " in said(report.notes)


def test_the_number_of_rows_need_not_be_known_to_preprocess(dataset: Dataset) -> None:
    assert check(dataset, task=tasks.Cut).problems == []


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (tasks.Worded, "feature 'word' of preprocess is a string"),
        (tasks.Ragged, "feature 'parts' of preprocess is a RaggedTensor"),
        (tasks.Loose, "feature 'parts' of preprocess has no static shape ((8, None))"),
        (tasks.Averaged, "the run does not start: objective 'loss': the loss has shape ()"),
    ],
)
def test_input_and_loss_that_do_not_fit(dataset: Dataset, task: Any, words: str) -> None:
    (found,) = check(dataset, task=task).problems
    assert words in str(found)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"global_batch": 100}, "8 cores cannot share this run (global_batch (100)"),
        ({"microbatches": 16}, "8 cores cannot share this run (microbatches (16)"),
        ({"task": "tabuler"}, "did you mean 'tabular'"),
    ],
)
def test_a_run_that_does_not_fit_eight_cores(
    dataset: Dataset, keys: dict[str, Any], words: str
) -> None:
    assert words in said(check(dataset, **keys).problems)


def test_several_hosts_are_refused(dataset: Dataset) -> None:
    spec = ClusterSpec("chief", 0, ("a:1", "b:1"), "TF_CONFIG")
    assert "TF_CONFIG names 2 workers" in said(check(dataset, spec).problems)


def test_what_only_costs_time_is_a_note(dataset: Dataset) -> None:
    report = check(dataset, global_batch=72, precision="float32")
    assert report.ready
    notes = said(report.notes)
    assert "global_batch (72) gives each of 8 cores 9 rows" in notes
    assert "precision (float32)" in notes
    assert f"data ({dataset.path}) is a path of this machine" in notes


def test_a_task_that_feeds_itself_is_checked_too() -> None:
    config = TrainConfig(
        output="run", steps=10, global_batch=64, task="trainer.examples.policy_gradient:CartPole"
    )
    assert examine(config, ClusterSpec()).problems == []


def test_the_doctor_prints_one_object_or_lines(
    dataset: Dataset,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "run.yaml"
    keys = {"data": dataset.path, "output": str(tmp_path / "run"), "global_batch": 64}
    file.write_text(yaml.safe_dump({**keys, "task": f"{tasks.__name__}:Worded"}))
    assert castell(["doctor", "--json", "--target", "tpu", "--run", str(file)]) == 2
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert found.keys() == {"ready", "problems", "notes"}
    assert found["ready"] is False
    assert found["problems"][0]["about"] == "feature 'word' of preprocess"
    (line,) = [text for text in captured.err.splitlines() if text.startswith("castell: error: ")]
    assert "not ready for a TPU: feature 'word'" in line
    argv = [word for key, value in keys.items() for word in (f"--{key}", str(value))]
    assert main([*argv, "--check", "tpu"]) == 0
    out = capsys.readouterr().out
    assert "note: precision (float32)" in out
    assert "a partial check: the step was compiled for XLA on this CPU, not for a TPU" in out
    assert not (tmp_path / "run").exists()


def test_the_doctor_wants_both_flags_or_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert castell(["doctor", "--target", "tpu"]) == 2
    assert "--target tpu needs --run CONFIG" in capsys.readouterr().err
    assert castell(["doctor", "--run", "x.yaml"]) == 2
    assert "says nothing without --target tpu" in capsys.readouterr().err
