"""How much a row counts: by its column, by its class, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.datasets import make_dataset
from trainer.data.blocks import Block, concat
from trainer.data.dataset import Dataset
from trainer.data.manifest import LabelKind
from trainer.data.rows import label_values, read_rows
from trainer.data.weighting import check_weights, row_weights, weighted
from trainer.errors import UsageError


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[LabelKind, Dataset]:
    kinds: tuple[LabelKind, ...] = ("binary", "multiclass", "regression")
    root = tmp_path_factory.mktemp("weights")
    return {k: make_dataset(root / k, rows=600, kind=k, weights=True) for k in kinds}


def rows_of(dataset: Dataset) -> Block:
    return concat(list(read_rows(dataset, "train")))


def test_a_weight_column_is_the_weight_and_no_input(data: dict[LabelKind, Dataset]) -> None:
    dataset = weighted(data["binary"], "w")
    block = rows_of(dataset)
    column = block.column(dataset.manifest.feature("w")).values
    assert (row_weights(dataset, block, training=False) == column).all()
    assert "w" not in [f.name for f in dataset.manifest.inputs]
    assert dataset.manifest.fingerprint == data["binary"].manifest.fingerprint


@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_balanced_classes_weigh_the_same_in_training_only(
    data: dict[LabelKind, Dataset], kind: LabelKind
) -> None:
    dataset = weighted(data[kind], None, "balanced")
    block = rows_of(dataset)
    label = label_values(dataset, block).astype(int)
    weights = row_weights(dataset, block, training=True)
    sums = np.bincount(label, weights)
    np.testing.assert_allclose(sums, block.rows / len(sums), rtol=1e-6)
    assert (row_weights(dataset, block, training=False) == 1).all()


def test_both_weights_multiply_and_unnamed_classes_count_1(
    data: dict[LabelKind, Dataset],
) -> None:
    dataset = weighted(data["multiclass"], "w", {"6": 3.0, "7": 0.0})
    block = rows_of(dataset)
    column = block.column(dataset.manifest.feature("w")).values
    factor = np.array([1, 3, 0])[label_values(dataset, block)]
    np.testing.assert_allclose(row_weights(dataset, block, training=True), column * factor)


@pytest.mark.parametrize(
    ("kind", "column", "classes", "words"),
    [
        ("binary", "weight", None, "no column 'weight'"),
        ("binary", "color", None, r"weight_column \(color\): it is not a number"),
        ("binary", "y", None, "it is the label"),
        ("binary", "n", None, r"weight_column \(n\), split 'train': \d+ of 480 rows have no value"),
        ("binary", "x1", None, r"the smallest weight is -\d"),
        ("binary", None, {"2": 1.0}, r"no class '2' \(there are 0, 1\)"),
        ("binary", None, {"0": 0.0, "1": 0.0}, "no row counts"),
        ("regression", None, "balanced", "'y' is a number"),
    ],
)
def test_what_is_no_weight_is_one_line(
    data: dict[LabelKind, Dataset], kind: LabelKind, column: str | None, classes: Any, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        check_weights(weighted(data[kind], column, classes), "train")


def test_weights_that_are_all_0(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path, rows=200, weights=True)
    train = dataset.statistics.splits["train"]
    zero = train.features["w"].model_copy(update={"min": 0.0, "max": 0.0})
    features = {**train.features, "w": zero}
    splits = {"train": train.model_copy(update={"features": features})}
    statistics = dataset.statistics.model_copy(update={"splits": splits})
    with pytest.raises(UsageError, match="all weights are 0"):
        check_weights(weighted(replace(dataset, statistics=statistics), "w"), "train")
