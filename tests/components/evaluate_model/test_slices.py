"""Every row stands in exactly one slice of a column."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from components.evaluate_model import slices
from components.evaluate_model.scored import Scored
from trainer.data.blocks import NULL_INT
from trainer.data.manifest import Feature, Label, Manifest
from trainer.data.statistics import FeatureStatistics
from trainer.errors import UsageError

RNG = np.random.default_rng(2)


def _cut(dtype: Any, values: Any, **more: Any) -> dict[Any, int]:
    """Cuts a column and returns rows by slice."""
    training = more.pop("training", None)
    slicing = slices.cut(Feature(name="c", dtype=dtype, **more), values, training)
    counts = {name: int(mask.sum()) for name, mask in slicing.masks()}
    assert sum(counts.values()) == len(values)
    return counts


def _words(*words: str) -> Any:
    values = np.empty(len(words), object)
    values[:] = [word.encode() for word in words]
    return values


def test_strings_by_value_and_null_apart() -> None:
    found = _cut("string", _words("UA", "AA", "", "AA", "Ü"))
    assert found == {"AA": 2, "UA": 1, "Ü": 1, "(missing)": 1}


def test_few_integers_by_value() -> None:
    assert _cut("int64", np.array([3, 1, NULL_INT, 3])) == {1: 1, 3: 2, "(missing)": 1}


def test_booleans_and_dates_by_their_names() -> None:
    found = _cut("int64", np.array([0, 1, 1]), logical="bool")
    assert found == {False: 1, True: 2}
    assert slices.text(next(iter(found))) == "false"
    assert _cut("int64", np.array([19723, 19723]), logical="date") == {"2024-01-01": 2}


def test_rare_values_become_other() -> None:
    values = _words(*[f"v{i:03}" for i in range(80) for _ in range(80 - i)], "")
    found = _cut("string", values)
    assert len(found) == slices.MOST_SLICES
    assert list(found)[-2:] == [slices.OTHER, slices.MISSING]
    assert found["v000"] == 80
    assert found[slices.OTHER] == sum(80 - i for i in range(48, 80))


def test_many_integers_by_quartile() -> None:
    found = _cut("int64", np.append(np.arange(100), NULL_INT))
    assert found == {"<24.75": 25, "[24.75, 49.5)": 25, "[49.5, 74.25)": 25, ">=74.25": 25,
                     "(missing)": 1}  # fmt: skip


def test_floats_by_the_training_statistics_quartiles() -> None:
    deciles = tuple(float(i) for i in range(11))
    training = FeatureStatistics(count=11, missing=0, quantiles=deciles)
    values = np.array([0, 2.5, 2.4, 7.5, np.nan, 100], np.float32)
    found = _cut("float32", values, training=training)
    assert found == {"<2.5": 2, "[2.5, 5)": 1, "[5, 7.5)": 0, ">=7.5": 2, "(missing)": 1}


def test_equal_quartiles_are_one_bin() -> None:
    training = FeatureStatistics(count=9, missing=0, quantiles=(0.0,) * 8 + (1.0, 2.0, 3.0))
    values = np.array([0, 0, 0, 5], np.float32)
    assert _cut("float32", values, training=training) == {"<0.5": 3, ">=0.5": 1}
    constant = FeatureStatistics(count=9, missing=0, quantiles=(1.0,) * 11)
    assert _cut("float32", np.ones(3, np.float32), training=constant) == {"(all)": 3}
    nothing = np.full(3, np.nan, np.float32)
    assert _cut("float32", nothing) == {"(all)": 0, "(missing)": 3}


def test_figures_leave_out_empty_slices_and_are_found_by_text() -> None:
    rows = Scored("binary", np.array([0.0, 1, 1]), np.ones(3), np.array([0.2, 0.9, 0.3]))
    slicing = slices.cut(Feature(name="c", dtype="int64"), np.array([1, 1, 2]), None)
    empty = slices.Slicing("d", ("x", "y"), np.zeros(3, np.int64))
    found = slices.figures(rows, [slicing, empty])
    assert [(f.slice, f.rows) for f in found] == [({"c": 1}, 2), ({"c": 2}, 1), ({"d": "x"}, 3)]
    assert found[0].metrics["auc"] == 1
    assert found[1].metrics["auc"] is None
    part = slices.find(found, {"c": "2"})
    assert part is not None
    assert part.rows == 1
    assert slices.find(found, {"c": "7"}) is None


def test_unknown_and_list_columns_are_refused() -> None:
    manifest = Manifest(
        layout="blocks",
        block_rows=8,
        features=(
            Feature(name="carrier", dtype="string"),
            Feature(name="history", dtype="float32", shape=(None,)),
            Feature(name="y", dtype="int64"),
        ),
        label=Label(name="y", kind="binary", classes=(0, 1)),
        splits={},
        seed=0,
        split_rule={},
        source={},
    )
    slices.check_columns(manifest, ["carrier", "y"])
    with pytest.raises(UsageError, match=r"--slice carier: .*did you mean 'carrier'.*history"):
        slices.check_columns(manifest, ["carier"])
    with pytest.raises(UsageError, match="--slice history: it holds a list"):
        slices.check_columns(manifest, ["history"])
