"""Real runs evaluated through the command: every row once, the same on any number of replicas."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from sklearn import metrics as reference

from components.evaluate_model.evaluation import Evaluation
from tests.components.models import KINDS, Model, castell, change, recoded, renamed
from trainer.data.rows import label_values, raw_features, read_rows


def _argv(model: Model, output: Path, *more: str, data: Path | None = None) -> list[str]:
    named = {"--run": model.run, "--data": data or model.data, "--output": output}
    return ["evaluate", *(str(word) for pair in named.items() for word in pair), *more]


def _read(output: Path) -> Evaluation:
    return Evaluation.model_validate_json((output / "evaluation.json").read_text())


def _predictions(output: Path) -> dict[str, Any]:
    table = pq.read_table(output / "predictions.parquet")
    return {name: np.array(table[name].to_pylist()) for name in table.column_names}


def _evaluate(start: Any, model: Model, output: Path, *more: str, **where: Any) -> Evaluation:
    log = output.with_suffix(".log")
    start(castell, _argv(model, output, *more, **where), log=log).expect(0)
    return _read(output)


@pytest.mark.parametrize("kind", KINDS)
def test_each_row_is_predicted_once_and_the_figures_are_of_all_rows(
    kind: str, models: dict[str, Model], start: Any, tmp_path: Path
) -> None:
    output = tmp_path / "evaluation"
    model = models[kind]
    slices = ("--slice", "color", "--slice", "x0", "--slice", "n")
    found = _evaluate(start, model, output, *slices)
    assert sorted(p.name for p in output.iterdir()) == [
        "evaluation.json", "predictions.parquet", "report.html",
    ]  # fmt: skip
    dataset = model.dataset
    blocks = list(read_rows(dataset, "test"))
    ids = np.concatenate([b.row_id for b in blocks])
    label = np.concatenate([label_values(dataset, b) for b in blocks])[np.argsort(ids)]
    rows = _predictions(output)
    assert rows["row_id"].tolist() == sorted(ids.tolist())
    assert rows["label"].tolist() == label.tolist()
    assert found.rows == dataset.split("test").rows == 300
    for column in ("color", "x0", "n"):
        assert sum(s.rows for s in found.slices if column in s.slice) == 300
    if kind == "regression":
        error = reference.root_mean_squared_error(label, rows["score"])
        assert found.metrics["rmse"] == pytest.approx(error, rel=1e-6)
        assert found.metrics["rmse"] is not None
        assert found.metrics["rmse"] < np.std(label)
    elif kind == "binary":
        area = reference.roc_auc_score(label, rows["score"])
        assert found.metrics["auc"] == pytest.approx(area, abs=1e-9)
        assert area > 0.7
        assert np.sum(found.confusion.matrix if found.confusion else 0) == 300
    else:
        chosen = np.argmax(rows["scores"], axis=1)
        assert found.metrics["accuracy"] == pytest.approx(np.mean(chosen == label))
        assert found.classes == ("5", "6", "7")


def test_a_failed_verdict_can_end_a_script(
    models: dict[str, Model], start: Any, tmp_path: Path
) -> None:
    output = tmp_path / "evaluation"
    argv = _argv(models["binary"], output, "--threshold", "auc>=1.1", "--slice", "color")
    log = start(castell, [*argv, "--require-pass"], log=tmp_path / "log").expect(1)
    assert "castell: error: the model did not pass: auc>=1.1" in log
    assert "auc is worst by color: " in log
    assert _read(output).verdict.passed is False


def test_a_slice_holds_the_rows_that_have_its_value(
    models: dict[str, Model], start: Any, tmp_path: Path
) -> None:
    output = tmp_path / "evaluation"
    found = _evaluate(start, models["binary"], output, "--threshold", "auc[color=red]>=0.5")
    dataset = models["binary"].dataset
    colors: dict[int, bytes] = {}
    for block in read_rows(dataset, "test"):
        values = raw_features(dataset, block, ["color"])["color"]
        colors.update(zip(block.row_id.tolist(), values, strict=True))
    rows = _predictions(output)
    red = np.array([colors[i] == b"red" for i in rows["row_id"].tolist()])
    (rule,) = found.verdict.rules
    assert rule.rows == red.sum()
    area = reference.roc_auc_score(rows["label"][red], rows["score"][red])
    assert rule.value == pytest.approx(area, abs=1e-9)


def test_the_figures_do_not_depend_on_replicas_or_batches(
    models: dict[str, Model], start: Any, tmp_path: Path
) -> None:
    one = _evaluate(start, models["binary"], tmp_path / "one", "--slice", "color")
    # 300 rows in steps of 14: the last has 6, and none for the second replica.
    more = ("--cpu-replicas", "2", "--batch", "14", "--slice", "color")
    two = _evaluate(start, models["binary"], tmp_path / "two", *more)
    assert (one.replicas, two.replicas) == (1, 2)
    assert two.metrics == pytest.approx(one.metrics, abs=1e-6)
    assert two.confusion == one.confusion
    for ours, theirs in zip(one.slices, two.slices, strict=True):
        assert (ours.slice, ours.rows) == (theirs.slice, theirs.rows)
        assert theirs.metrics == pytest.approx(ours.metrics, abs=1e-6)
    a, b = _predictions(tmp_path / "one"), _predictions(tmp_path / "two")
    assert a["row_id"].tolist() == b["row_id"].tolist()
    assert np.abs(a["score"] - b["score"]).max() <= 1e-6


def test_a_failing_verdict_is_said_and_the_command_ends_well(
    models: dict[str, Model], start: Any, tmp_path: Path
) -> None:
    output = tmp_path / "evaluation"
    rules = ("--threshold", "auc>=0.999", "--threshold", "auc>=baseline")
    argv = _argv(models["binary"], output, *rules, "--baseline", str(models["binary"].run))
    log = start(castell, [*argv, "--json"], log=tmp_path / "log").expect(0)
    printed = json.loads(next(line for line in log.splitlines() if line.startswith("{")))
    assert printed == json.loads((output / "evaluation.json").read_text())
    assert printed["verdict"]["passed"] is False
    assert [rule["passed"] for rule in printed["verdict"]["rules"]] == [False, True]
    assert set(printed["baseline"]["differences"].values()) == {0}
    # Once more into the same directory, now passing.
    assert _evaluate(start, models["binary"], output).verdict.passed


def test_other_dictionary_codes_for_the_same_words_change_nothing(
    models: dict[str, Model], start: Any, tmp_path: Path
) -> None:
    data = recoded(models["binary"].data, tmp_path / "recoded")
    _evaluate(start, models["binary"], tmp_path / "as-trained")
    _evaluate(start, models["binary"], tmp_path / "other-codes", data=data)
    a, b = _predictions(tmp_path / "as-trained"), _predictions(tmp_path / "other-codes")
    assert np.abs(a["score"] - b["score"]).max() <= 1e-6


def _no_label_class(manifest: Any) -> None:
    manifest["label"]["classes"] = [0, 2]


def _cut_shard(data: Path) -> None:
    shard = next((data / "test").iterdir())
    shard.write_bytes(shard.read_bytes()[:-1])


@pytest.mark.parametrize(
    ("case", "says"),
    [
        ("no run", "is not a run directory"),
        ("no checkpoint", "has no whole checkpoint"),
        ("no dataset", "is not a dataset directory"),
        ("no split", "split 'holdout' is not in .*: it has eval, test, train"),
        ("columns", "other columns than the run was trained on: x0 is missing; n is missing"),
        ("new column", "other columns .*: z is new"),
        ("label", "has the label 'y' .binary of 0, 2., the run was trained on 'y' .binary of 0, 1"),
        ("slice", "--slice colour: there is no such column, did you mean 'color'"),
        ("threshold", "unknown metric 'acc'"),
        ("foreign", "holds more than an earlier evaluation"),
        ("batch", r"batch \(0\): input should be greater than 0"),
        ("damaged", "bytes, the manifest says"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    case: str, says: str, models: dict[str, Model], start: Any, tmp_path: Path
) -> None:
    model, output, data = models["binary"], tmp_path / "evaluation", None
    more: tuple[str, ...] = ()
    before: set[str] = set()
    match case:
        case "no run":
            model = Model(tmp_path / "nothing", model.data)
        case "no checkpoint":
            shutil.copytree(model.run, tmp_path / "run")
            shutil.rmtree(tmp_path / "run" / "checkpoints")
            model = Model(tmp_path / "run", model.data)
        case "no dataset":
            data = tmp_path / "nothing"
        case "no split":
            more = ("--split", "holdout")
        case "columns":
            data = renamed(model.data, tmp_path / "data", {"x0": "a", "n": "b"})
        case "new column":
            data = tmp_path / "data"
            shutil.copytree(model.data, data)
            change(data, lambda m: m["features"].append({"name": "z", "dtype": "float32"}))
        case "label":
            data = tmp_path / "data"
            shutil.copytree(model.data, data)
            change(data, _no_label_class)
        case "slice":
            more = ("--slice", "colour")
        case "threshold":
            more = ("--threshold", "acc>=0.5")
        case "foreign":
            output.mkdir()
            (output / "mine.txt").write_text("x")
            before = {"mine.txt"}
        case "batch":
            more = ("--batch", "0")
        case "damaged":
            data = tmp_path / "data"
            shutil.copytree(model.data, data)
            _cut_shard(data)
    log = tmp_path / "log"
    text = start(castell, _argv(model, output, *more, data=data), log=log).expect(2)
    errors = [line for line in text.splitlines() if line.startswith("castell: error: ")]
    assert len(errors) == 1, text
    assert "Traceback" not in text
    assert re.search(says, errors[0]), errors[0]
    there = {p.name for p in output.iterdir()} if output.exists() else set()
    assert there == before
    assert not list(tmp_path.glob(".evaluation*"))
