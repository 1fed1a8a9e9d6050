"""Data with something wrong is blocked by name and row; clean data of the same kind passes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from components.validate_data.options import ValidateOptions
from components.validate_data.validate import Blocked, validate
from components.validate_data.validation import Validation
from tests.components.validate_data.tables import (
    NUMBERS,
    broken,
    columns,
    judged,
    made,
    scaled,
)
from trainer.data.dataset import Dataset
from trainer.errors import UsageError
from trainer.run.directory import RunDirectory


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> str:
    return made(tmp_path_factory.mktemp("baseline"), columns(0))


@pytest.mark.parametrize("seed", range(1, 7))
def test_clean_data_passes_without_a_warning(tmp_path: Path, baseline: str, seed: int) -> None:
    found = judged(made(tmp_path, columns(seed)), baseline=baseline)
    assert [f.message for f in found.findings] == []
    assert found.verdict.passed


@pytest.mark.parametrize("rows", [60, 400])
@pytest.mark.parametrize("seed", range(3))
def test_small_clean_data_passes_against_large_and_the_other_way_round(
    tmp_path: Path, baseline: str, rows: int, seed: int
) -> None:
    small = made(tmp_path, columns(seed + 50, rows), split="train=0.8,eval=0.2")
    assert judged(small, baseline=baseline).findings == ()
    assert [f for f in judged(baseline, baseline=small).findings if f.level == "block"] == []


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", NUMBERS)
def test_a_column_scaled_in_5_percent_of_its_rows_is_caught_and_named_with_rows(
    tmp_path: Path, baseline: str, name: str, seed: int
) -> None:
    changed, rows = scaled(columns(seed), name, seed)
    found = judged(made(tmp_path, changed, split="train=1"), baseline=baseline)
    blocking = [f for f in found.findings if f.level == "block"]
    assert {f.column for f in blocking} == {name}
    outside = broken(found, "out_of_range") + broken(found, "outlier")
    assert outside
    assert len(outside[0].row_ids) == 20
    assert set(outside[0].row_ids) <= rows
    assert outside[0].rows is not None
    assert 0.4 * len(rows) <= outside[0].rows <= 1.1 * len(rows) + 30


def test_few_rows_are_enough_if_they_are_far_away(tmp_path: Path) -> None:
    small = made(tmp_path / "small", columns(11, 300), split="train=1")
    changed, rows = scaled(columns(12, 300), "uniform", 12)
    (found,) = broken(judged(made(tmp_path / "bad", changed, split="train=1"), baseline=small),
                      "out_of_range")  # fmt: skip
    assert found.column == "uniform"
    assert set(found.row_ids) <= rows


@pytest.mark.parametrize("name", NUMBERS)
def test_a_column_scaled_in_one_split_only_is_caught_without_a_baseline(
    tmp_path: Path, name: str
) -> None:
    changed, _ = scaled(columns(5), name, 5)
    part = np.where(np.arange(6000) < 4000, "train", "eval")
    values = np.where(part == "eval", changed[name], columns(5)[name])
    table = {**columns(5), name: values, "part": part}
    data = made(tmp_path, table, split_column="part", drop=("part",))
    # Such a split may differ by design, so that it only warns unless told to block.
    assert judged(data).verdict.passed
    found = judged(data, rules=("out_of_range=block", "outlier=block"))
    assert {(f.column, f.split) for f in found.findings if f.level == "block"} == {(name, "eval")}


def test_splits_by_time_and_by_group_pass(tmp_path: Path) -> None:
    table = columns(5)
    when = np.datetime64("2024-01-01") + np.arange(6000) // 10
    by_time = made(tmp_path / "time", {**table, "when": when}, split_time="when")
    assert judged(by_time).verdict.passed
    group = np.array([f"g{i}" for i in np.arange(6000) // 7])
    by_group = made(tmp_path / "group", {**table, "group": group}, split_by=("group",))
    found = judged(by_group)
    assert found.verdict.passed
    assert {f.rule for f in broken(found, "new_category")} == {"new_category"}


def test_a_run_is_a_baseline_by_the_figures_that_it_keeps(tmp_path: Path, baseline: str) -> None:
    run = RunDirectory(str(tmp_path / "run"))
    run.start({}, frozenset())
    run.keep_dataset(Dataset.open(baseline))
    clean = made(tmp_path / "clean", columns(7))
    changed, _ = scaled(columns(7), "wide", 7)
    assert judged(clean, run=run.path).verdict.passed
    found = judged(made(tmp_path / "bad", changed), run=run.path)
    assert not found.verdict.passed
    assert found.baseline is not None
    assert found.baseline.kind == "run"
    assert found.baseline.fingerprint == Dataset.open(baseline).manifest.fingerprint
    assert "the data the run was trained on" in found.findings[0].message


def test_what_is_written_is_what_is_returned_and_replaces_its_own_kind(
    tmp_path: Path, baseline: str
) -> None:
    changed, _ = scaled(columns(2), "wide", 2)
    bad = made(tmp_path / "bad", changed)
    for data in (bad, baseline):
        output = str(tmp_path / "out")
        found = validate(ValidateOptions(data=data, baseline=baseline, output=output))
        written = json.loads(Path(output, "validation.json").read_text())
        assert Validation.model_validate(written) == found
        assert written["verdict"]["passed"] == (data == baseline)
        assert sorted(p.name for p in Path(output).iterdir()) == [
            "validation.html", "validation.json"
        ]  # fmt: skip


def test_the_error_names_the_first_finding_and_how_many_more_there_are(
    tmp_path: Path, baseline: str
) -> None:
    changed, _ = scaled(columns(2), "wide", 2)
    found = judged(made(tmp_path, changed), baseline=baseline)
    error = Blocked.of(found)
    assert error.exit_code == 2
    assert "out_of_range, wide, train: 5" in str(error)
    assert f"(and {found.verdict.blocked - 1} more)" in str(error)


def test_both_layouts_are_judged_alike(tmp_path: Path, baseline: str) -> None:
    changed, _ = scaled(columns(2, 1500), "wide", 2)
    messages = []
    for layout in ("blocks", "rows"):
        data = made(tmp_path / layout, changed, layout=layout, split="train=1")
        messages.append([f.message for f in judged(data, baseline=baseline).findings])
    assert messages[0] == messages[1] != []


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"baseline": "nowhere"}, "nowhere is not a dataset directory"),
        ({"run": "nowhere"}, "--run nowhere holds no statistics of its training data"),
        ({"rules": ("drift[wid]<=0.2",)}, "has no column 'wid', did you mean 'wide'?"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(
    tmp_path: Path, baseline: str, options: dict[str, str], text: str
) -> None:
    with pytest.raises(UsageError) as caught:
        judged(baseline, output=str(tmp_path / "out"), **options)
    assert text in str(caught.value)
    assert list(tmp_path.iterdir()) == []
