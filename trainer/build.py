"""From a configuration to everything that a run trains: Task, optimizers, scale, averages.

What a user's Task gets wrong is said here, before the first step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from trainer.config import TrainConfig
from trainer.data.dataset import Dataset
from trainer.errors import UsageError
from trainer.loop import batch_norm, seeds
from trainer.loop.ema import Ema
from trainer.loop.optimizer import check_losses, make_optimizers
from trainer.loop.precision import LossScale, make_loss_scale
from trainer.loop.step import TrainStep
from trainer.loop.variables import all_variables, freeze, trained_variables
from trainer.task import Task
from trainer.tasks import build_task


@dataclass(frozen=True)
class Trainable:
    """What a run changes, made inside the strategy's scope.

    settle: makes statistics that replicas keep for themselves equal; a collective.
    """

    task: Task
    strategy: tf.distribute.Strategy
    optimizers: Mapping[str, keras.optimizers.Optimizer]
    scale: LossScale | None
    ema: Ema | None
    settle: Callable[[], None]

    @property
    def variables(self) -> dict[str, Any]:
        """All that a checkpoint holds, by name."""
        variables = all_variables(self.task, self.optimizers)
        for part in (self.scale, self.ema):
            variables |= part.variables if part is not None else {}
        return variables

    def updates(self) -> int:
        """Returns how often this process has changed the weights; any thread may ask."""
        iterations = next(iter(self.optimizers.values())).iterations.value
        # Of a variable with a copy on each replica, one: no collective.
        return int(getattr(iterations, "values", [iterations])[0].numpy())

    def step(self, config: TrainConfig) -> TrainStep:
        """Returns the step over all of it."""
        return TrainStep(
            self.task, self.strategy, self.optimizers, config, scale=self.scale, ema=self.ema
        )


def build(config: TrainConfig, dataset: Dataset, strategy: tf.distribute.Strategy) -> Trainable:
    """Returns a Task with its first weights and all that belongs to it.

    Raises:
      UsageError: Task and configuration do not fit each other, or would train something else than
        they seem to.
    """
    with strategy.scope():
        keras.utils.set_random_seed(config.seed)
        task = build_task(config, dataset)
        if dataset.is_nothing and not task.feeds_itself:
            raise UsageError(f"data is required: {config.task} reads a data set, pass --data DIR")
        task.learn(dataset)
        check_losses(task)
        freeze(task, config.freeze)
        settle = batch_norm.settle(task, strategy, config.batch_norm)
        seeds.reseed(task.models(), config.seed)
        optimizers = make_optimizers(task, config)
        scale = make_loss_scale(config)
        ema = Ema(trained_variables(task), config.ema_decay) if config.ema_decay else None
    return Trainable(task, strategy, optimizers, scale, ema, settle)
