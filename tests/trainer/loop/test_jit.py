"""The trial of XLA: it leaves no trace in the weights, and settles for what works."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests.trainer.loop.test_mistakes import Plain
from trainer.config import TrainConfig
from trainer.errors import UsageError
from trainer.loop import jit
from trainer.loop.optimizer import make_optimizers
from trainer.loop.step import TrainStep
from trainer.loop.variables import all_variables
from trainer.task import Task

BATCHES = ({"x": tf.ones([2, 4, 2])}, tf.zeros([2, 4]), tf.ones([2, 4]))


def made(task: Task, **changes: object) -> tuple[TrainStep, dict[str, tf.Variable]]:
    config = TrainConfig(data="d", output="o", steps=2, global_batch=4, **changes)
    optimizers = make_optimizers(task, config)
    step = TrainStep(task, tf.distribute.get_strategy(), optimizers, config)
    return step, all_variables(task, optimizers)


def test_after_the_trial_every_variable_is_as_before() -> None:
    step, variables = made(Plain(lambda rows: rows**2))
    before = {name: v.numpy() for name, v in variables.items()}
    choice = jit.choose(step, BATCHES, 2, variables)
    assert all((v.numpy() == before[name]).all() for name, v in variables.items())
    assert step.compiled == choice.compiled
    assert "times as fast" in choice.reason


def words(rows: tf.Tensor) -> tf.Tensor:
    """Something that XLA has no code for."""
    return rows**2 + 0.0 * tf.strings.to_number(tf.strings.as_string(rows))


def test_a_step_that_xla_cannot_compile_is_not_compiled() -> None:
    step, variables = made(Plain(words))
    choice = jit.choose(step, BATCHES, 2, variables)
    assert not choice.compiled
    assert "AsString" in choice.reason


def test_who_insists_is_told_why_it_does_not_work() -> None:
    step, _ = made(Plain(words), jit="on")
    with pytest.raises(UsageError, match=r"jit \(on\): XLA cannot compile .*AsString.*--jit off"):
        step(BATCHES, first=0, count=2, step=0, nonfinite_run=tf.constant(0))


def test_compiled_or_not_the_weights_are_equal() -> None:
    weights = []
    for compiled in (False, True):
        tf.keras.utils.set_random_seed(0)
        step, variables = made(Plain(lambda rows: rows**2), microbatches=2)
        step.compiled = compiled
        step(BATCHES, first=0, count=2, step=0, nonfinite_run=tf.constant(0))
        weights.append(np.concatenate([v.numpy().ravel() for v in variables.values()]))
    assert weights[0] == pytest.approx(weights[1], abs=1e-6)


def test_a_call_that_begins_elsewhere_is_not_compiled_anew() -> None:
    step, _ = made(Plain(lambda rows: rows**2), jit="on")
    zero = tf.constant(0)
    for first, count in ((0, 2), (1, 1), (0, 1)):
        step(BATCHES, first=first, count=count, step=first, nonfinite_run=zero)
    compiled = step._many_compiled
    assert compiled.experimental_get_tracing_count() == 1
    code = [
        compiled.experimental_get_compiler_ir(BATCHES, tf.constant([first, 2, 0]), zero)(
            stage="hlo"
        )
        for first in (0, 1)
    ]
    assert code[0] == code[1]  # where it begins is no constant of the program
