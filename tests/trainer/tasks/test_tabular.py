"""The tabular task: what each column becomes, and that words and codes mean the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.datasets import make_dataset
from trainer.data.blocks import NULL_INT
from trainer.data.manifest import Feature
from trainer.data.rows import raw_features, read_rows
from trainer.data.statistics import FeatureStatistics
from trainer.errors import UsageError
from trainer.tasks import options_class, task_class
from trainer.tasks.tabular.encode import MISSING, UNKNOWN, Number, Words, small_integer
from trainer.tasks.tabular.options import TabularOptions
from trainer.tasks.tabular.task import Tabular


def test_numbers_are_normalised_and_missing_is_told_apart() -> None:
    figures = FeatureStatistics(count=3, missing=1, mean=10.0, std=2.0)
    number = Number.of(Feature(name="x", dtype="float32"), figures)
    values, missing = number(tf.constant([12.0, np.nan, 1e9]))
    assert values.numpy().ravel().tolist() == [1.0, 0.0, 10.0]
    assert missing.numpy().ravel().tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("nullable", [False, True])
def test_a_list_of_any_rank_is_as_many_numbers(nullable: bool) -> None:
    figures = FeatureStatistics(count=1, missing=0, mean=0.0, std=1.0)
    feature = Feature(name="x", dtype="float32", shape=(2, 3), nullable=nullable)
    values = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    columns = Number.of(feature, figures)(tf.constant(values))
    assert [column.shape for column in columns] == [(2, 6)] * (1 + nullable)
    assert columns[0].numpy().tolist() == np.minimum(values, 10).reshape(2, 6).tolist()


def test_large_integers_are_centred_before_they_lose_digits() -> None:
    mean = 1_700_000_000_000_000
    figures = FeatureStatistics(count=2, missing=0, mean=float(mean), std=1.0)
    number = Number.of(Feature(name="t", dtype="int64", nullable=True), figures)
    values, missing = number(tf.constant([mean + 1, mean - 2, NULL_INT], tf.int64))
    assert values.numpy().ravel().tolist() == [1.0, -2.0, 0.0]
    assert missing.numpy().ravel().tolist() == [0.0, 0.0, 1.0]


def test_words_and_codes_give_the_same_index() -> None:
    feature = Feature(name="c", dtype="string", dictionary=("a", "b", "c"))
    words = Words(feature, ["c", "a"])
    by_word = words(tf.constant(["", "a", "b", "c", "new"])).numpy().tolist()
    by_code = words(tf.constant([-1, 0, 1, 2])).numpy().tolist()
    assert by_word == [MISSING, 3, UNKNOWN, 2, UNKNOWN]
    assert by_code == by_word[:4]


def test_small_whole_numbers_are_categories() -> None:
    feature = Feature(name="month", dtype="int64")
    figures = FeatureStatistics(count=9, missing=0, distinct=12, min=1, max=12)
    index = small_integer(feature, figures, TabularOptions())
    assert index is not None
    assert index(tf.constant([1, 12, 13, NULL_INT], tf.int64)).numpy().tolist() == [
        2, 13, UNKNOWN, MISSING,
    ]  # fmt: skip
    scattered = figures.model_copy(update={"max": 1e6})
    assert small_integer(feature, scattered, TabularOptions()) is None


@pytest.mark.parametrize("kind", ["binary", "multiclass", "regression"])
def test_a_served_request_gives_what_training_sees(tmp_path: Path, kind: Any) -> None:
    dataset = make_dataset(tmp_path, rows=400, kind=kind)
    task = Tabular()
    task.build(dataset)
    columns = task.columns(dataset)
    block = next(read_rows(dataset, "test"))
    arrays = {k: tf.constant(v) for k, v in columns.arrays(block).items()}
    trained = task.preprocess(columns.named(arrays))
    names = [f.name for f in columns.features]
    raw = raw_features(dataset, block, names)
    served = task.preprocess({name: tf.constant(raw[name]) for name in names})
    assert sorted(trained) == sorted(served)
    for name, values in trained.items():
        assert values.numpy().tolist() == served[name].numpy().tolist()
    (output,) = task.serve(served).values()
    assert output.shape[0] == block.rows
    if kind == "multiclass":
        assert np.allclose(np.sum(output, axis=1), 1, atol=1e-5)


def test_columns_can_be_chosen_and_left_out(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path, rows=100)

    def chosen(**options: Any) -> list[str]:
        task = Tabular(TabularOptions.model_validate(options))
        return [f.name for f in task.inputs(dataset.manifest)]

    assert chosen() == ["x0", "x1", "n", "color"]
    assert chosen(columns="x0,color") == ["x0", "color"]
    assert chosen(ignore=["x0", "n"]) == ["x1", "color"]
    with pytest.raises(
        UsageError, match="column 'colour' is not in the data, did you mean 'color'"
    ):
        chosen(ignore="colour")
    with pytest.raises(UsageError, match="no input column"):
        chosen(columns="x0", ignore="x0")


def test_files_are_for_another_task(tmp_path: Path) -> None:
    manifest = make_dataset(tmp_path, rows=20).manifest
    image = Feature(name="image", dtype="string", logical="bytes")
    data = manifest.model_copy(update={"features": (image, *manifest.features)})
    with pytest.raises(UsageError, match=r"column image holds files: .* --task image"):
        Tabular().inputs(data)
    others = Tabular(TabularOptions(ignore=("image",))).inputs(data)
    assert image.name not in [f.name for f in others]


def test_unknown_tasks_are_named() -> None:
    with pytest.raises(UsageError, match="unknown task 'tabula', did you mean 'tabular'"):
        options_class("tabula")
    for name in ("", ":", ".:A", "a:b:c", "x y:Z", "a.:B", "a:"):
        with pytest.raises(UsageError, match="unknown task"):
            options_class(name)
    with pytest.raises(UsageError, match="there is no module 'no_such_package"):
        options_class("no_such_package.tasks:Task")
    with pytest.raises(UsageError, match="there is no module 'no_such_module'"):
        task_class("no_such_module:Task")
    with pytest.raises(UsageError, match="has no 'Nothing'"):
        task_class("trainer.tasks.tabular.task:Nothing")
    with pytest.raises(UsageError, match="is not a subclass"):
        task_class("trainer.tasks.tabular.options:TabularOptions")
