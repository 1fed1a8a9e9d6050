"""Mistakes of a user's Task that would train something else, or nothing, without a word."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import keras
import pytest
import tensorflow as tf

from tests.datasets import make_dataset
from trainer.config import TrainConfig
from trainer.errors import UsageError
from trainer.loop.optimizer import make_optimizers
from trainer.loop.step import TrainStep
from trainer.task import Batch, Objective, Task
from trainer.tasks import build_task


class Plain(Task):
    """One dense layer; the loss is what the test gives."""

    def __init__(self, change: Callable[[tf.Tensor], Any] = lambda rows: rows) -> None:
        super().__init__()
        self.change = change
        self.model = keras.Sequential([keras.Input([2]), keras.layers.Dense(1)])

    def loss(self, batch: Batch, training: bool) -> tf.Tensor:
        return self.change(self.model(batch.features["x"])[:, 0] - batch.label)


class Unbuilt(Task):
    """Its weights would come into being inside the first step."""

    def build(self, data: Any) -> None:
        self.model = keras.Sequential([keras.layers.Dense(1)])


def step_once(task: Task) -> Any:
    config = TrainConfig(data="d", output="o", steps=1, global_batch=4)
    step = TrainStep(task, tf.distribute.get_strategy(), make_optimizers(task, config), config)
    batches = ({"x": tf.ones([1, 4, 2])}, tf.zeros([1, 4]), tf.ones([1, 4]))
    return step(batches, first=0, count=1, step=0, nonfinite_run=tf.constant(0))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda rows: rows[:, None], r"shape \(4, 1\), not \(4,\): return one value a row"),
        (tf.reduce_mean, r"shape \(\), not \(4,\)"),
        (lambda rows: 1.0, r"shape \(\), not \(4,\)"),
        (tf.ones_like, "trains nothing: its loss depends on none of its 2 variables"),
    ],
)
def test_a_loss_that_is_not_one_value_a_row_or_trains_nothing(
    change: Callable[[tf.Tensor], Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        step_once(Plain(change))


def test_a_frozen_model_trains_nothing() -> None:
    task = Plain()
    task.model.trainable = False
    with pytest.raises(UsageError, match="objective 'loss' has no variables to train"):
        step_once(task)


def test_a_loss_of_another_precision_is_cast() -> None:
    outcome = step_once(Plain(lambda rows: tf.cast(rows**2, tf.float64)))
    assert outcome.losses.dtype == tf.float32
    assert int(outcome.finite) == 1


def test_a_model_without_weights_is_refused(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path, rows=200)
    config = TrainConfig(data=str(tmp_path), output="o", task=f"{__name__}:Unbuilt")
    with pytest.raises(UsageError, match="left model without weights"):
        build_task(config, dataset)


class Holding(Task):
    """Keeps weights where the loop does not look, in the way that a test sets."""

    hold: Callable[[Task, keras.Model], None] = staticmethod(lambda task, made: None)

    def build(self, data: Any) -> None:
        self.model = keras.Sequential([keras.Input([2]), keras.layers.Dense(1)])
        type(self).hold(self, keras.Sequential([keras.Input([2]), keras.layers.Dense(1)]))


def build_holding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hold: Any) -> None:
    monkeypatch.setattr(Holding, "hold", staticmethod(hold))
    dataset = make_dataset(tmp_path, rows=200)
    config = TrainConfig(data=str(tmp_path), output="o", task=f"{__name__}:Holding")
    build_task(config, dataset)


@pytest.mark.parametrize(
    ("attribute", "make", "words"),
    [
        ("heads", lambda made: [made], r"left heads\[0\] \(Sequential\).*an attribute of its own"),
        ("heads", lambda made: {"a": (made,)}, r"left heads\['a'\]\[0\] \(Sequential\)"),
        ("layer", lambda made: made.layers[0], r"left layer \(Dense\).*into a keras.Model"),
        ("layer", lambda made: keras.layers.Dense(1), r"left layer \(Dense\)"),
        ("bias", lambda made: tf.Variable(1.0), r"left bias \(.*Variable\).*into a keras.Model"),
        ("bias", lambda made: keras.Variable(1.0), r"left bias \(Variable\)"),
    ],
)
def test_weights_that_would_be_neither_trained_nor_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attribute: str, make: Any, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        build_holding(
            tmp_path, monkeypatch, lambda task, made: setattr(task, attribute, make(made))
        )


def test_parts_of_a_model_and_what_has_no_weights_may_be_kept_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hold(task: Any, made: keras.Model) -> None:
        task.other = made
        task.parts = [made, made.layers[0], made.layers[0].kernel]
        task.scale = keras.layers.Rescaling(2.0)
        task.drop = [keras.layers.Dropout(0.5), keras.layers.RandomFlip()]
        task.norm = keras.layers.Normalization(mean=0.0, variance=1.0)
        task.shapes = [
            keras.layers.Concatenate(),
            keras.layers.Reshape([2]),
            keras.layers.Permute([1]),
            keras.layers.Flatten(),
            keras.layers.TextVectorization(vocabulary=["a"]),
        ]
        task.words = keras.layers.StringLookup(vocabulary=["a"])
        pairs = tf.lookup.KeyValueTensorInitializer(["a"], [1])
        task.tables = {"a": tf.lookup.StaticHashTable(pairs, 0)}
        task.mean = keras.metrics.Mean()

    build_holding(tmp_path, monkeypatch, hold)


def _trains(*variables: Any) -> Any:
    return lambda task: [Objective("x", task.loss, variables)]


@pytest.mark.parametrize(
    ("objectives", "words"),
    [
        (lambda task: None, r"objectives\(\) returned None: return a list"),
        (lambda task: [], r"objectives\(\) returned none: .* at least one"),
        (lambda task: Objective("x", task.loss, []), r"objectives\(\) returned Objective: "),
        (lambda task: ["loss"], r"returned str in its list"),
        (
            lambda task: [Objective("x", task.loss, cast(Any, None))],
            "objective 'x': variables is None",
        ),
        (_trains(keras.Variable(1.0, name="temperature")), "'x' trains 'temperature', .*not be sa"),
        (_trains(tf.Variable(1.0, name="t")), "'x' trains 't:0', which belongs to no Keras model"),
        (lambda task: _trains(task.model.weights[0].value)(task), "is the tf.Variable behind"),
        (
            lambda task: _trains(*task.model.weights * 2)(task),
            "objective 'x' lists '.*kernel' twice",
        ),
        (
            lambda task: [Objective("x", task.loss, task.model.weights, keras.optimizers.SGD())],
            "is SGD: optimizer must be a function that makes one: lambda: keras.optimizers.Adam",
        ),
    ],
)
def test_objectives_that_are_none_or_would_not_be_saved(objectives: Any, words: str) -> None:
    task = Plain()
    task.objectives = lambda: objectives(task)  # type: ignore[method-assign]
    with pytest.raises(UsageError, match=words):
        step_once(task)


def test_objectives_and_variables_may_be_generators() -> None:
    class Yields(Plain):
        def objectives(self) -> Any:
            variables: Any = (v for v in self.model.trainable_variables)
            yield Objective("x", self.loss, variables)

    assert int(step_once(Yields(tf.square)).finite) == 1


def test_what_two_models_share_is_trained_once() -> None:
    task = Plain(tf.square)
    task.again = keras.Sequential([keras.Input([2]), task.model.layers[0]])
    assert len(task.trained_variables()) == len(task.model.trainable_variables)
    assert int(step_once(task).finite) == 1
