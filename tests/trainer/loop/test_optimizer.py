"""What Keras accepts and gets wrong in a distributed step is refused, with what does it right."""

from __future__ import annotations

from typing import Any

import keras
import pytest

from trainer.config import TrainConfig
from trainer.errors import UsageError
from trainer.loop.optimizer import check_losses, make_optimizers
from trainer.task import Objective, Task

CONFIG = TrainConfig(data="d", output="o", steps=1)


class Own(Task):
    """One dense layer and the optimizer that a test gives."""

    def __init__(self, make: Any, names: tuple[str, ...] = ("loss",)) -> None:
        super().__init__()
        self.model = keras.Sequential([keras.Input([2]), keras.layers.Dense(1)])
        self._make, self._names = make, names

    def objectives(self) -> Any:
        return [Objective(n, self.loss, self.trained_variables(), self._make) for n in self._names]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: keras.optimizers.SGD(clipnorm=1.0), r"clipnorm \(1.0\) .* use --clip-norm"),
        (lambda: keras.optimizers.SGD(clipvalue=1.0), r"clipvalue \(1.0\) .* use --clip-norm"),
        (lambda: keras.optimizers.SGD(global_clipnorm=1.0), r"before the all-reduce: .*--clip-n"),
        (lambda: keras.optimizers.Adam(gradient_accumulation_steps=4), "use --microbatches"),
        (lambda: keras.optimizers.Adam(use_ema=True), "use --ema-decay"),
        (
            lambda: keras.optimizers.Adam(use_ema=True, ema_overwrite_frequency=10),
            "use --ema-decay",
        ),
        (lambda: keras.optimizers.SGD(loss_scale_factor=8.0), "use --precision float16"),
        (
            lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD()),
            "return the inner optimizer and pass --precision float16",
        ),
        (lambda: "sgd", "returned str: return a Keras 3 optimizer"),
    ],
)
def test_an_optimizer_that_goes_wrong_across_replicas_is_refused(make: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words) as error:
        make_optimizers(Own(make), CONFIG)
    assert "objective 'loss'" in str(error.value)


def test_an_optimizer_is_made_anew_for_each_objective() -> None:
    shared = keras.optimizers.SGD()
    with pytest.raises(UsageError, match="must return a new optimizer"):
        make_optimizers(Own(lambda: shared, ("a", "b")), CONFIG)
    with pytest.raises(UsageError, match="two are called 'a'"):
        make_optimizers(Own(keras.optimizers.SGD, ("a", "a")), CONFIG)


def test_the_users_optimizer_is_taken_with_its_slots() -> None:
    (optimizer,) = make_optimizers(Own(lambda: keras.optimizers.Adam(0.5)), CONFIG).values()
    assert float(optimizer.learning_rate) == 0.5
    assert optimizer.built


def test_a_keras_loss_that_averages_is_refused() -> None:
    task = Own(None)
    task.criterion = keras.losses.BinaryCrossentropy()
    with pytest.raises(UsageError, match=r"criterion \(BinaryCrossentropy\) averages"):
        check_losses(task)
    task.criterion = keras.losses.BinaryCrossentropy(reduction=None)
    check_losses(task)
