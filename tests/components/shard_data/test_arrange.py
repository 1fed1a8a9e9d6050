"""Which row goes to which split and shard, whatever the rule."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from components.shard_data.arrange import keys, ranks
from tests.components.shard_data.made import make_text, refused_text, rows

_KEYS = st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 40), min_size=1, max_size=60)


@settings(max_examples=200, deadline=None)
@given(st.lists(_KEYS, min_size=1, max_size=4), st.data())
def test_keys_at_ranks_are_those_of_a_sort(parts: list[list[int]], data: st.DataObject) -> None:
    arrays = [np.array(part, np.uint64) for part in parts]
    ordered = np.sort(np.concatenate(arrays))
    wanted = data.draw(st.lists(st.integers(0, len(ordered) - 1), max_size=8))

    def load() -> Iterator[keys.Keys]:
        return iter(arrays)

    assert ranks.at(load, wanted).tolist() == ordered[wanted].tolist()


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2))
def test_moments_keep_their_order(values: list[int]) -> None:
    moments = np.array(values, np.int64)
    order = np.argsort(keys.of_moments(moments), kind="stable")
    assert moments[order].tolist() == sorted(values)


def _log(count: int) -> str:
    lines = [f"2024-01-{1 + i * 28 // count:02d},{i % 7},{i % 2}" for i in range(count)]
    return "day,shop,y\n" + "\n".join(lines) + "\n"


def test_time_parts_train_from_eval_from_test(tmp_path: Path) -> None:
    manifest = make_text(
        tmp_path, _log(2800), split="train=0.7,eval=0.2,test=0.1", split_time="day"
    )
    days = {name: rows(tmp_path / "out", name)["day"] for name in manifest.splits}
    assert max(days["train"]) < min(days["eval"])
    assert max(days["eval"]) < min(days["test"])
    shares = {name: split.rows / 2800 for name, split in manifest.splits.items()}
    assert shares == pytest.approx({"train": 0.7, "eval": 0.2, "test": 0.1}, abs=0.04)
    stored = rows(tmp_path / "out")["stored"]
    assert abs(np.corrcoef(np.arange(len(stored)), stored)[0, 1]) < 0.1


def test_moments_that_are_few_are_parted_as_near_as_may_be(tmp_path: Path) -> None:
    text = "year,x,y\n" + "".join(f"{2022 + i // 100},{i},{i % 2}\n" for i in range(300))
    manifest = make_text(tmp_path, text, split="train=0.8,eval=0.2", split_time="year")
    assert {name: split.rows for name, split in manifest.splits.items()} == {
        "train": 200, "eval": 100,
    }  # fmt: skip


def test_a_moment_that_is_missing_is_an_error(tmp_path: Path) -> None:
    text = "day,x,y\n2024-01-01,1,0\n,2,1\n2024-01-03,3,0\n"
    assert "--split-time day: the column is missing in 1 rows" in refused_text(
        tmp_path, text, split_time="day"
    )
    assert "is float32, not a date" in refused_text(tmp_path, "x,y\n0.5,0\n1.5,1\n", split_time="x")


def test_a_column_may_name_the_splits(tmp_path: Path) -> None:
    text = "part,x,y\n" + "".join(
        f"{'train' if i % 3 else 'holdout'},{i},{i % 2}\n" for i in range(90)
    )
    manifest = make_text(tmp_path, text, split_column="part")
    assert {name: split.rows for name, split in manifest.splits.items()} == {
        "holdout": 30, "train": 60,
    }  # fmt: skip
    assert "part" not in [feature.name for feature in manifest.features]
    assert all(i % 3 == 0 for i in rows(tmp_path / "out", "holdout")["x"])


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("part,x,y\na,1,0\nb,2,1\n", {"split_column": "part"}, "a split called train"),
        ("part,x,y\n1,1,0\n2,2,1\n", {"split_column": "part"}, "names of a few splits"),
        ("x,y\n1,0\n2,1\n", {"split_column": "z"}, "--split-column z: "),
        ("x,y\n1,0\n2,1\n", {"split_time": "z"}, "--split-time z: "),
        ("x,y\n1,0\n2,1\n", {"split_column": "x", "split": "train=1"}, "the column says"),
        ("x,y\n1,0\n2,1\n", {"split_by": "y"}, "the label y cannot decide"),
        ("x,y\n1,0\n2,1\n", {"split_by": "x", "split_time": "x"}, "say one of them"),
    ],
)
def test_rules_that_do_not_fit_are_refused(
    tmp_path: Path, text: str, options: dict[str, str], said: str
) -> None:
    assert said in refused_text(tmp_path, text, **options)


def test_equal_values_of_several_columns_share_a_split(tmp_path: Path) -> None:
    text = "a,b,x,y\n" + "".join(f"{i // 40},{i // 4 % 5},{i},{i % 2}\n" for i in range(2000))
    manifest = make_text(
        tmp_path, text, split="train=0.6,eval=0.4", split_by=["a", "b"], drop=["a"]
    )
    owner: dict[tuple[int, int], str] = {}
    for name in manifest.splits:
        for i in rows(tmp_path / "out", name)["x"]:
            assert owner.setdefault((i // 40, i // 4 % 5), name) == name
    # One column alone does not decide.
    assert len({name for (a, _), name in owner.items() if a == 3}) == 2
    assert manifest.split_rule["column"] == ["a", "b"]


def test_the_rule_stands_in_the_manifest(tmp_path: Path) -> None:
    make_text(tmp_path, _log(280), split_time="day")
    rule = json.loads((tmp_path / "out/manifest.json").read_text())["split_rule"]
    assert rule["column"] == "day"
    assert "by time" in rule["method"]
