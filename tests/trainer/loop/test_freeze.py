"""Weights that stay as they are, by the paths that people know."""

from __future__ import annotations

import keras
import pytest

from tests.trainer.loop.test_mistakes import Plain, step_once
from trainer.errors import UsageError
from trainer.loop.variables import freeze, matching, task_variables, trained_variables


def task() -> Plain:
    made = Plain(lambda rows: rows**2)
    made.model = keras.Sequential(
        [
            keras.Input([2]),
            keras.layers.Dense(3, name="low"),
            keras.layers.BatchNormalization(name="norm"),
            keras.layers.Dense(1, name="high"),
        ]
    )
    return made


def test_frozen_weights_do_not_move_and_others_do() -> None:
    made = task()
    freeze(made, ["model/low"])
    before = {name: v.numpy() for name, v in task_variables(made).items()}
    step_once(made)
    moved = {n for n, v in task_variables(made).items() if (v.numpy() != before[n]).any()}
    assert "model/0000/kernel" not in moved
    assert "model/0006/kernel" in moved
    assert set(trained_variables(made)) == set(matching(made, ["model/norm/[bg]*", "*high*"], "k"))


def test_a_frozen_layer_serves() -> None:
    made = task()
    freeze(made, ["model/norm/*"])
    assert not made.model.get_layer("norm").trainable  # its moving averages stay, too
    assert made.model.get_layer("low").trainable


def test_a_pattern_that_matches_nothing_is_told_what_there_is() -> None:
    with pytest.raises(UsageError, match=r"freeze \(mdl\) .* there are model/low/kernel, "):
        freeze(task(), ["mdl"])
    with pytest.raises(UsageError, match="leaves no weight to train"):
        freeze(task(), ["*"])
