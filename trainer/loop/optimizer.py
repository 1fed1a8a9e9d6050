"""The optimizers of a step, and what Keras' own would get wrong in it.

Gradients arrive reduced, so an optimizer's own all-reduce is switched off. What Keras does before
its reduce (clipping, testing for finiteness) or cannot do under a strategy (accumulation, averages)
is refused with the key that does it right.
"""

from __future__ import annotations

from typing import Any

import keras

from trainer.config import TrainConfig
from trainer.errors import UsageError
from trainer.loop import fused
from trainer.loop.objectives import objectives_of
from trainer.loop.schedule import Schedule
from trainer.task import Objective, Task

# Keras' argument, why not, and what instead.
_REFUSED = {
    "clipnorm": ("clips each gradient before the all-reduce", "--clip-norm"),
    "clipvalue": ("clips before the all-reduce", "--clip-norm"),
    "global_clipnorm": ("clips one replica's gradients before the all-reduce", "--clip-norm"),
    "gradient_accumulation_steps": ("fails under a strategy", "--microbatches"),
    "use_ema": ("fails or drifts under a strategy", "--ema-decay"),
    "ema_overwrite_frequency": ("fails under a strategy", "--ema-decay"),
    "loss_scale_factor": ("scales the loss a second time", "--precision float16"),
}


def make_optimizers(task: Task, config: TrainConfig) -> dict[str, keras.optimizers.Optimizer]:
    """Returns each objective's optimizer, its slots made; call it inside the strategy's scope.

    Raises:
      UsageError: `objectives()` is not what it must be, or brings an optimizer that does what is
        refused here.
    """
    optimizers: dict[str, keras.optimizers.Optimizer] = {}
    for objective in objectives_of(task):
        made = objective.optimizer() if objective.optimizer else make_optimizer(config)
        _check(objective, made)
        made._all_reduce_sum_gradients = lambda grads_and_vars: grads_and_vars
        made.build(list(objective.variables))
        optimizers[objective.name] = made
    return optimizers


def make_optimizer(config: TrainConfig) -> keras.optimizers.Optimizer:
    """Returns the optimizer that `config` describes."""
    schedule = Schedule(config, config.steps or 0)
    if config.optimizer == "sgd":
        return keras.optimizers.SGD(schedule, momentum=config.momentum)
    if config.optimizer == "adam":
        return fused.Adam(schedule)
    return fused.Adam(schedule, weight_decay=config.weight_decay)


def _check(objective: Objective, optimizer: Any) -> None:
    where = f"objective {objective.name!r}: "
    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        raise UsageError(
            f"{where}LossScaleOptimizer tests one replica's gradients, and replicas that disagree "
            "hang: return the inner optimizer and pass --precision float16"
        )
    if not isinstance(optimizer, keras.optimizers.Optimizer):
        raise UsageError(
            f"{where}optimizer() returned {type(optimizer).__name__}: return a Keras 3 optimizer"
        )
    if optimizer.built:
        raise UsageError(f"{where}optimizer() must return a new optimizer, this one is in use")
    for name, (why, instead) in _REFUSED.items():
        value = getattr(optimizer, name, None)
        if value and not (name == "ema_overwrite_frequency" and not optimizer.use_ema):
            raise UsageError(
                f"{where}the optimizer's {name} ({value}) {why}: leave it out, use {instead}"
            )


def check_losses(task: Task) -> None:
    """Refuses a Keras Loss that averages: it would divide by the number of replicas once more."""
    for name, value in vars(task).items():
        if isinstance(value, keras.losses.Loss) and value.reduction not in (None, "none"):
            raise UsageError(
                f"{name} ({type(value).__name__}) averages with reduction {value.reduction!r}, and "
                "divides by the number of replicas: make it with reduction=None; the loop averages"
            )
