"""The compiled pipeline, whole, through kfp.local: a good model is exported, a bad one is not."""

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

from components.shard_data.options import ShardOptions
from components.shard_data.shard import shard
from pipelines.compile import compile_to
from pipelines.run import Finished, StepFailed, run_compiled

STEPS = ("shard-data", "validate-data", "train-model", "evaluate-model", "export-model")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """3,000 rows whose label follows x and color, with nulls written NA."""
    draw = random.Random(7)
    lines = ["x,color,y"]
    for _ in range(3000):
        x, color = draw.gauss(0, 1), draw.choice(["red", "green", "blue"])
        chance = 1 / (1 + math.exp(-3 * x - (2 if color == "red" else 0)))
        shown = "NA" if draw.random() < 0.02 else f"{x:.4f}"
        lines.append(f"{shown},{color},{'yes' if draw.random() < chance else 'no'}")
    file = tmp_path_factory.mktemp("table") / "table.csv"
    file.write_text("\n".join(lines) + "\n")
    return file


def run(table: Path, workdir: Path, **more: Any) -> Finished:
    file = workdir / "pipeline.yaml"
    compile_to(str(file), "train_evaluate_export", target="local")
    parameters = {
        "sources": [str(table)],
        "label": "y",
        "null_values": ["NA"],
        "shard_options": {"block_rows": 128, "shards": 4},
        "steps": 120,
        "config": {"global_batch": 128, "learning_rate": 5e-3, "log_every": 40, "hidden": [16]},
        "slices": ["color"],
        **more,
    }
    return run_compiled(str(file), parameters, workdir=str(workdir / "runs"))


def metadata(finished: Finished, step: str) -> dict[str, dict[str, Any]]:
    """Returns what a step said on each of its output artifacts."""
    output = json.loads(finished.artifact(step, "executor_output.json").read_text())
    return {name: found["artifacts"][0]["metadata"] for name, found in output["artifacts"].items()}


@pytest.mark.timeout(280)
def test_a_good_model_is_exported_from_two_workers(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finished = run(table, tmp_path, workers=2, thresholds=["auc>=0.8"])
    assert finished.steps == STEPS
    assert (finished.artifact("export-model", "model") / "saved_model.pb").exists()
    assert finished.artifact("evaluate-model", "report").read_text().startswith("<!DOCTYPE html>")

    dataset = metadata(finished, "shard-data")["dataset"]
    assert (dataset["rows"], dataset["label_kind"]) == (3000, "binary")
    validated = metadata(finished, "validate-data")
    assert validated["validation"]["passed"]
    assert validated["metrics"]["blocked"] == 0
    assert finished.artifact("validate-data", "report").read_text().startswith("<!DOCTYPE html>")
    trained = metadata(finished, "train-model")["run"]
    assert (trained["step"], trained["replicas"]) == (120, 2)
    assert trained["dataset_fingerprint"] == dataset["fingerprint"]
    evaluated = metadata(finished, "evaluate-model")
    assert evaluated["metrics"]["auc"] >= 0.8
    assert evaluated["evaluation"]["rows"] == dataset["test_rows"]
    assert evaluated["classification"]["confidenceMetrics"]
    assert metadata(finished, "export-model")["model"]["step"] == 120

    out = capsys.readouterr().out
    assert "castell: error" not in out
    assert all(f"▸ {step}" in out for step in STEPS)


@pytest.mark.timeout(100)
def test_data_unlike_its_baseline_is_not_trained_on(table: Path, tmp_path: Path) -> None:
    lines = table.read_text().splitlines()
    shifted = [f"{i % 97},{line.partition(',')[2]}" for i, line in enumerate(lines[1:])]
    other = tmp_path / "other.csv"
    other.write_text("\n".join([lines[0], *shifted]) + "\n")
    baseline = str(tmp_path / "baseline")
    shard(ShardOptions.parse({"sources": [str(other)], "output": baseline, "label": "y"}))
    with pytest.raises(
        StepFailed, match=r"validate-data failed: .* does not pass: .*, x"
    ) as caught:
        run(table, tmp_path, baseline=baseline, validate_rules=["schema=warn"])
    assert caught.value.exit_code == 2
    assert list((tmp_path / "runs").glob("*/validate-data/validation/validation.html"))
    assert not list((tmp_path / "runs").glob("*/train-model"))


@pytest.mark.timeout(200)
def test_a_model_that_fails_its_threshold_is_not_exported(table: Path, tmp_path: Path) -> None:
    finished = run(table, tmp_path, steps=20, thresholds=["auc>=0.999"])
    assert finished.steps == STEPS[:-1]
    assert not metadata(finished, "evaluate-model")["evaluation"]["passed"]
    assert not finished.artifact("export-model", "model").exists()
