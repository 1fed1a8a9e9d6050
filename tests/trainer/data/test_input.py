"""Super-batches as tensors: weights, and augmentation that no number of replicas changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.datasets import make_dataset
from trainer.data.dataset import Dataset
from trainer.data.input import Tensors, padded, training_batches
from trainer.data.lanes import plan
from trainer.data.rowseeds import row_seeds
from trainer.data.weighting import weighted
from trainer.task import Task

BATCH, STEPS = 32, 3


class Noisy(Task):
    """Adds noise of a row's own to x1."""

    def preprocess(self, features: Tensors) -> Tensors:
        return {"x1": features["x1"]}

    def augment(self, features: Tensors, seed: tf.Tensor) -> Tensors:
        noise = tf.map_fn(
            lambda one: tf.random.stateless_uniform([], one), seed, fn_output_signature=tf.float32
        )
        return {"x1": features["x1"] + noise}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return make_dataset(tmp_path_factory.mktemp("input"), rows=600, shards=8, weights=True)


def global_batches(dataset: Dataset, replicas: int, step: int = 0, **changes: Any) -> Any:
    """Returns x1 and weight of each step's global batch, [steps, lanes, rows], lanes in order."""
    task = Noisy()
    shards = [shard.rows for shard in dataset.split("train").shards]
    lanes = plan(shards, global_batch=BATCH, replicas=replicas)
    found = np.zeros((2, STEPS, lanes.count, lanes.rows_per_step), np.float32)
    for replica in range(replicas):
        feed = training_batches(
            task.columns(dataset), "train", task.preprocess, lanes,
            replica=replica, replicas=replicas, step=step, last=step + STEPS, steps=STEPS,
            **{"augment": task.augment, **changes},
        )  # fmt: skip
        features, _, weight = next(feed)
        for place, value in enumerate((features["x1"], weight)):
            by_lane = value.numpy().reshape(STEPS, -1, lanes.rows_per_step)
            found[place, :, replica::replicas] = by_lane
    return found


@pytest.mark.parametrize("replicas", [2, 4])
def test_augmented_rows_are_the_same_on_any_number_of_replicas(
    dataset: Dataset, replicas: int
) -> None:
    np.testing.assert_array_equal(global_batches(dataset, replicas), global_batches(dataset, 1))


def test_augmentation_is_resumed_and_depends_on_the_seed(dataset: Dataset) -> None:
    (whole, _), (rest, _) = global_batches(dataset, 1), global_batches(dataset, 2, step=1)
    np.testing.assert_array_equal(whole[1:], rest[:-1])
    (plain, _), (other, _) = (
        global_batches(dataset, 1, augment=None), global_batches(dataset, 1, seed=1)
    )  # fmt: skip
    noise = whole - plain
    assert 0 <= noise.min() < 0.1
    assert 0.9 < noise.max() <= 1
    assert (other != whole).any()


def test_each_row_of_each_step_has_a_seed_of_its_own() -> None:
    seeds = row_seeds(0, 0, 100, np.arange(256))
    assert len({tuple(pair) for pair in seeds.tolist()}) == 100 * 256
    assert (row_seeds(0, 7, 1, np.arange(256)) == seeds.reshape(100, 256, 2)[7]).all()


def test_a_super_batch_carries_the_weights(dataset: Dataset) -> None:
    (_, ones), (_, weights) = (
        global_batches(dataset, 2), global_batches(weighted(dataset, "w"), 2)
    )  # fmt: skip
    assert (ones == 1).all()
    assert set(np.unique(weights)) == {0, 1, 2, 3}


def test_rows_that_fill_up_a_batch_weigh_nothing() -> None:
    arrays = {"label": np.arange(3), "weight": np.ones(3, np.float32)}
    assert padded(arrays, 5)["weight"].tolist() == [1, 1, 1, 0, 0]


def test_a_column_may_be_called_weight_or_label(tmp_path: Path) -> None:
    from trainer.data.input import Columns
    from trainer.data.manifest import Feature, Storage

    texts = Feature(name="weight", dtype="string", storage=Storage(kind="loose", key="bytes/w"))
    columns = Columns(make_dataset(tmp_path, rows=100), (texts,), codes=False)
    specs = columns.signature(4)
    assert specs["weight"].dtype == tf.float32
    assert columns.named({"column/weight": tf.constant(["a"]), "weight": tf.ones(1)}) == {
        "weight": tf.constant(["a"])
    }
