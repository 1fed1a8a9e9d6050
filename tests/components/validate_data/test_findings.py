"""Each rule finds what it is there for, tells where, and is silent otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.components.validate_data.tables import ROWS, broken, columns, judged, made


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> str:
    return made(tmp_path_factory.mktemp("baseline"), columns(0))


def changed(seed: int = 3, **more: Any) -> dict[str, Any]:
    return {**columns(seed), **more}


def test_a_new_category_is_named_with_its_rows(tmp_path: Path, baseline: str) -> None:
    word = columns(3)["word"].astype(object)
    word[::50] = "nowhere before"
    data = made(tmp_path, changed(word=word), split="train=1")
    (found,) = broken(judged(data, baseline=baseline), "new_category")
    assert (found.column, found.level, found.rows) == ("word", "block", ROWS // 50)
    assert "nowhere before (120)" in found.message
    assert len(found.row_ids) == 20
    assert all(row % 50 == 0 for row in found.row_ids)
    eased = judged(data, baseline=baseline, rules=("new_category=warn",))
    assert [f.level for f in broken(eased, "new_category")] == ["warn"]
    assert eased.verdict.passed


def test_a_new_category_of_text_without_a_dictionary_is_found(tmp_path: Path) -> None:
    words = np.array([f"v{i:05d}" for i in range(5000)], object)
    rng = np.random.default_rng(0)
    usual = words[np.arange(30_000) % 5000]
    first = made(tmp_path / "a", {"t": usual, "y": rng.integers(0, 2, 30_000)})
    odd = usual.copy()
    odd[:300] = "odd"
    second = made(tmp_path / "b", {"t": odd, "y": rng.integers(0, 2, 30_000)}, split="train=1")
    (found,) = broken(judged(second, baseline=first), "new_category")
    assert "odd (300)" in found.message
    assert len(set(found.row_ids) & set(range(300))) >= 18


def test_missing_values_are_told_by_share_and_by_change(tmp_path: Path, baseline: str) -> None:
    gaps = columns(3)["gaps"].copy()
    gaps[: ROWS // 2] = np.nan
    data = made(tmp_path, changed(gaps=gaps), split="train=1")
    found = judged(data, baseline=baseline, rules=("missing<=0.4",))
    (change,) = broken(found, "missing_change")
    (share,) = broken(found, "missing")
    assert (change.level, share.level) == ("block", "warn")
    assert change.rows == share.rows == int(np.isnan(gaps).sum())
    assert "in the baseline" in change.message
    assert set(share.row_ids) <= set(np.flatnonzero(np.isnan(gaps)).tolist())


def test_a_column_that_moves_drifts_and_is_told_by_its_median(
    tmp_path: Path, baseline: str
) -> None:
    data = made(tmp_path, changed(normal=columns(3)["normal"] + 0.8), split="train=1")
    found = broken(judged(data, baseline=baseline), "drift")
    assert "normal" in {f.column for f in found}
    message = next(f.message for f in found if f.column == "normal")
    assert "of the values are up to" in message
    assert not broken(judged(data, baseline=baseline, rules=("drift[normal]<=0.5",)), "drift")


def test_categories_that_change_their_shares_drift(tmp_path: Path, baseline: str) -> None:
    word = columns(3)["word"].astype(object)
    word[::3] = "w0"
    data = made(tmp_path, changed(word=word), split="train=1")
    (found,) = broken(judged(data, baseline=baseline), "drift")
    assert found.column == "word"
    assert found.message.startswith("w0: ")


def by_order(found: dict[str, Any]) -> dict[str, Any]:
    """The first two thirds train, the others are evaluated on."""
    rows = len(found["y"])
    return {**found, "part": np.where(np.arange(rows) < rows * 2 // 3, "train", "eval")}


def test_splits_that_differ_are_told_as_skew_and_imbalance(tmp_path: Path) -> None:
    late = np.arange(ROWS) >= ROWS * 2 // 3
    table = by_order(
        changed(
            normal=columns(3)["normal"] + late,
            y=np.where(late & (np.arange(ROWS) % 2 == 0), 1, columns(3)["y"]),
        )
    )
    found = judged(
        made(tmp_path, table, split_column="part"), rules=("outlier=off", "out_of_range=off")
    )
    assert {(f.rule, f.column, f.split, f.level) for f in found.findings} == {
        ("skew", "normal", "eval", "warn"),
        ("balance", "y", "eval", "warn"),
    }
    assert "class " in broken(found, "balance")[0].message


def test_rows_that_are_in_two_splits_are_found(tmp_path: Path) -> None:
    table = columns(3)
    again = np.concatenate([np.arange(ROWS), np.arange(0, ROWS * 2 // 3, 10)])
    table = {name: values[again] for name, values in table.items()}
    part = np.where(np.arange(len(again)) < ROWS * 2 // 3, "train", "eval")
    data = made(tmp_path, {**table, "part": part}, split_column="part")
    (found,) = broken(judged(data), "duplicate")
    assert (found.rows, found.split, found.level) == (400, "eval", "warn")
    assert set(found.row_ids) <= set(range(ROWS, ROWS + 400))


def test_a_constant_column_and_one_without_values_are_told(tmp_path: Path) -> None:
    table = changed(same=np.full(ROWS, 7), word=np.full(ROWS, "one"))
    found = broken(judged(made(tmp_path, table)), "constant")
    assert {f.column for f in found} == {"same", "word"}


@pytest.mark.parametrize("kind", ["binary", "multiclass", "regression"])
def test_a_feature_that_gives_the_label_away_is_suspected_and_no_other(
    tmp_path: Path, kind: str
) -> None:
    rng = np.random.default_rng(0)
    table = columns(3)
    if kind == "multiclass":
        label = rng.integers(0, 4, ROWS)
        leak: Any = np.array(["north", "east", "south", "west"])[label]
    elif kind == "binary":
        label = table["y"]
        leak = np.where(label == 1, np.nan, rng.random(ROWS))  # known only where it happened
    else:
        label = table["normal"] * 3 + rng.normal(0, 3, ROWS)
        leak = np.exp(label)
    number = np.arange(ROWS)
    data = made(tmp_path, {**table, "y": label, "leak": leak, "number": number}, label_kind=kind)
    found = broken(judged(data), "leakage")
    assert [(f.column, f.level) for f in found] == [("leak", "warn")]


def test_columns_that_are_missing_new_or_of_another_kind_are_named(
    tmp_path: Path, baseline: str
) -> None:
    table = changed(word=np.arange(ROWS) % 7, extra=np.random.default_rng(0).random(ROWS))
    del table["small"]
    found = broken(judged(made(tmp_path, table), baseline=baseline), "schema")
    assert {f.column: f.message.split(" (")[0].split(":")[0] for f in found} == {
        "small": "the column is missing",
        "word": "it holds int64, in the baseline string",
        "extra": "the column",
    }
    assert all(f.level == "block" for f in found)


def test_another_label_is_told(tmp_path: Path, baseline: str) -> None:
    data = made(tmp_path, changed(y=np.random.default_rng(0).integers(0, 3, ROWS)))
    (found,) = broken(judged(data, baseline=baseline), "schema")
    assert found.message == (
        "the label is y (multiclass: 0, 1, 2), in the baseline y (binary: 0, 1)"
    )


def test_later_times_warn_and_block_only_if_told_to(tmp_path: Path) -> None:
    first = np.datetime64("2024-01-01") + np.arange(ROWS) // 100
    before = made(tmp_path / "a", changed(when=first))
    after = made(tmp_path / "b", changed(when=first + 30), split="train=1")
    found = judged(after, baseline=before)
    assert {(f.rule, f.column, f.level) for f in found.findings} == {
        ("out_of_range", "when", "warn"), ("drift", "when", "warn"),
    }  # fmt: skip
    assert "above 2024-02-29" in broken(found, "out_of_range")[0].message
    told = judged(after, baseline=before, rules=("drift[when]=block",))
    assert not told.verdict.passed


def test_lists_and_pictures_are_looked_at_as_far_as_they_can_be(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)

    def table(factor: float) -> dict[str, Any]:
        vectors = rng.normal(0, 1, (400, 3))
        vectors[::10] *= factor
        return {
            "vector": [row.tolist() for row in vectors],
            "ragged": [rng.normal(0, 1, n % 4).tolist() for n in range(400)],
            "picture": [b"\x89PNG\xff" + rng.bytes(300) for _ in range(400)],
            "y": rng.integers(0, 2, 400),
        }

    first = made(tmp_path / "a", table(1))
    clean = judged(made(tmp_path / "b", table(1), split="train=1"), baseline=first)
    assert clean.findings == ()
    bad = judged(made(tmp_path / "c", table(1000), split="train=1"), baseline=first)
    (found,) = broken(bad, "out_of_range")
    assert found.column == "vector"
    assert found.rows in range(40, 44)
    assert all(row % 10 == 0 for row in found.row_ids)
