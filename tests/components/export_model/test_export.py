"""The exported file says what the evaluated model says, or does not appear."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from components.export_model.export import take_sample
from components.run_data import raw_columns
from tests.components.models import KINDS, Model, castell, change, renamed
from tests.datasets import make_dataset
from tests.runs import flags, run_main
from tests.workers import processes
from trainer.data.blocks import NULL_INT
from trainer.data.dataset import Dataset
from trainer.data.example import Example

ODD_NAMES = {"x0": "Dep Delay", "x1": "dep_delay", "n": "class", "color": "self"}
ODD = "tests.components.export_model.odd_task"


def _argv(model: Model, output: Path, *more: str) -> list[str]:
    return ["export", "--run", str(model.run), "--output", str(output), *more]


def _description(output: Path) -> Any:
    return json.loads((output / "assets.extra" / "castell.json").read_text())


def _printed(log: str) -> Any:
    return json.loads(next(line for line in log.splitlines() if line.startswith("{")))


@pytest.fixture(scope="module")
def odd(models: dict[str, Model], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set whose column names no SavedModel takes as they are."""
    return renamed(models["binary"].data, tmp_path_factory.mktemp("odd") / "data", ODD_NAMES)


def _train_odd(start: Any, data: Path, root: Path, task: str) -> Model:
    model = Model(root / "run", data)
    argv = flags(Dataset.open(str(data)), model.run, steps=20, task=f"{ODD}:{task}")
    where = argv.index("--hidden")  # a key of the tabular task only
    start(run_main, argv[:where] + argv[where + 2 :], log=root / "train.log").expect(0)
    return model


@dataclass(frozen=True)
class Exported:
    """A finished export and what the command printed."""

    path: Path
    printed: Any


@pytest.fixture(scope="module")
def exported(
    models: dict[str, Model], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Exported]:
    """One export for each kind of label, side by side."""
    root = tmp_path_factory.mktemp("exported")
    with processes() as start:
        workers = {
            kind: start(castell, _argv(model, root / kind, "--json"), log=root / f"{kind}.log")
            for kind, model in models.items()
        }
        logs = {kind: worker.expect(0) for kind, worker in workers.items()}
    # Nothing half-written is left beside the models.
    assert sorted(p.name for p in root.iterdir()) == sorted(
        name for kind in KINDS for name in (kind, f"{kind}.log")
    )
    return {kind: Exported(root / kind, _printed(log)) for kind, log in logs.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_both_signatures_say_what_the_evaluated_model_says(
    kind: str, exported: dict[str, Exported]
) -> None:
    printed, description = exported[kind].printed, _description(exported[kind].path)
    assert description["parity"]["largest_difference"] == printed["parity"]
    output = {"binary": "probability", "multiclass": "probabilities", "regression": "prediction"}
    assert sorted(printed["parity"]) == [
        f"{signature} {output[kind]}" for signature in ("serving_default", "serving_examples")
    ]
    assert max(printed["parity"].values()) <= 1e-5
    assert printed["rows"] == 300
    assert printed["step"] == description["step"] == 100
    assert description["label"]["kind"] == kind
    assert [i["column"] for i in description["inputs"]] == ["x0", "x1", "n", "color"]


def test_a_clean_process_with_tensorflow_alone_answers_both_spellings_of_null_alike(
    exported: dict[str, Exported], tmp_path: Path
) -> None:
    full, empty = Example(), Example()
    full.features.feature["x0"].float_list.value.append(1.5)
    full.features.feature["x1"].float_list.value.append(-1)
    full.features.feature["n"].int64_list.value.append(3)
    full.features.feature["color"].bytes_list.value.append(b"red")
    empty.features.feature["x1"].float_list.value.append(-1)
    serialized = [full.SerializeToString(), empty.SerializeToString()]
    requests: dict[str, Any] = {
        "serving_default:x0": np.array([1.5, np.nan], np.float32),
        "serving_default:x1": np.array([-1, -1], np.float32),
        "serving_default:n": np.array([3, NULL_INT]),
        "serving_default:color": np.array([b"red", b""], object),
        "serving_examples:examples": np.array(serialized, object),
    }
    np.savez(tmp_path / "in.npz", **requests)
    code = (
        "import runpy, sys;"
        "runpy.run_module('components.export_model.parity', run_name='__main__');"
        "print(sorted(m for m in sys.modules if m.startswith('trainer')))"
    )
    files = [str(exported["binary"].path), str(tmp_path / "in.npz"), str(tmp_path / "out.npz")]
    result = subprocess.run(
        [sys.executable, "-c", code, *files],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "[]"
    with np.load(tmp_path / "out.npz") as file:
        a, b = (file[f"{s}:probability"] for s in ("serving_default", "serving_examples"))
    assert a.shape == (2,)
    assert np.abs(a - b).max() <= 1e-6
    assert a[0] != a[1]


def test_a_users_task_with_tables_and_odd_column_names(
    odd: Path, start: Any, tmp_path: Path
) -> None:
    model = _train_odd(start, odd, tmp_path, "Odd")
    output = tmp_path / "model"
    log = start(castell, _argv(model, output, "--json"), log=tmp_path / "log").expect(0)
    printed = _printed(log)
    assert sorted(printed["parity"]) == sorted(
        f"{signature} {name}"
        for signature in ("serving_default", "serving_examples")
        for name in ("probability", "logit", "pair")
    )
    inputs = {i["column"]: i["serving_default"] for i in _description(output)["inputs"]}
    assert inputs["self"] == "self_"
    assert len(set(inputs.values())) == 4


def test_a_model_that_serves_something_else_does_not_appear(
    odd: Path, start: Any, tmp_path: Path
) -> None:
    model = _train_odd(start, odd, tmp_path, "Wrong")
    output = tmp_path / "model"
    text = start(castell, _argv(model, output), log=tmp_path / "log").expect(1)
    (error,) = [line for line in text.splitlines() if line.startswith("castell: error: ")]
    assert re.search(r"serving_\w+ probability by up to \d.*on 300 rows of test", error)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log", "run", "train.log"]


def test_the_sample_is_the_first_rows_of_the_split_that_training_saw_least_of(
    tmp_path: Path,
) -> None:
    dataset = make_dataset(tmp_path, rows=16_000)  # test: 1,600 rows in two shards
    sample = take_sample(dataset)
    assert (sample.split, sample.rows) == ("test", 1000)
    ids, columns = raw_columns(sample.dataset, "test", ["x1", "color"])
    every, whole = raw_columns(dataset, "test", ["x1", "color"])
    assert len(ids) == 1000
    chosen = np.isin(every, ids)
    assert columns["x1"].tolist() == whole["x1"][chosen].tolist()
    assert columns["color"].tolist() == whole["color"][chosen].tolist()

    def without_test(manifest: Any) -> None:
        del manifest["splits"]["test"]

    change(tmp_path, without_test)
    assert take_sample(Dataset.open(str(tmp_path))).split == "eval"


@pytest.mark.parametrize(
    ("case", "says"),
    [
        ("no run", "is not a run directory"),
        ("data gone", "is not a dataset directory"),
        ("columns", "other columns than the run was trained on: x0 is missing"),
        ("format", "format 'savedmodel' is not supported, did you mean 'saved_model'"),
        ("tflite", "format 'tflite' is not supported: there is saved_model"),
        ("foreign", "holds more than an earlier export"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    case: str, says: str, models: dict[str, Model], start: Any, tmp_path: Path
) -> None:
    model, output = models["binary"], tmp_path / "model"
    more: tuple[str, ...] = ()
    match case:
        case "no run":
            model = Model(tmp_path / "nothing", model.data)
        case "data gone":
            more = ("--data", str(tmp_path / "nothing"))
        case "columns":
            more = ("--data", str(renamed(model.data, tmp_path / "data", {"x0": "a"})))
        case "format":
            more = ("--format", "savedmodel")
        case "tflite":
            more = ("--format", "tflite")
        case "foreign":
            output.mkdir()
            (output / "saved_model.pb").write_text("somebody's")
    text = start(castell, _argv(model, output, *more), log=tmp_path / "log").expect(2)
    (error,) = [line for line in text.splitlines() if line.startswith("castell: error: ")]
    assert re.search(says, error), error
    assert "Traceback" not in text
    held = [p.name for p in output.iterdir()] if output.exists() else []
    assert held == (["saved_model.pb"] if case == "foreign" else [])
