"""The names under which a Task's and its optimizers' variables stand in a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras

from trainer.loop.step import raw
from trainer.task import Task


def task_variables(task: Task) -> dict[str, Any]:
    """Returns name -> tf.Variable of all models' weights.

    The place in the model keeps names unique. Keras' paths need not be, and they count the layers
    that the process has made before: "dense_3" in the second model that it loads.
    """
    return {
        f"{attribute}/{place:04d}/{variable.name}": value
        for attribute, model in sorted(task.models().items())
        for place, (variable, value) in enumerate(
            zip(model.weights, raw(model.weights), strict=True)
        )
    }


def all_variables(
    task: Task, optimizers: Mapping[str, keras.optimizers.Optimizer]
) -> dict[str, Any]:
    """Returns `task_variables` and the optimizers' (iterations, slots)."""
    variables = task_variables(task)
    for name, optimizer in sorted(optimizers.items()):
        for place, (variable, value) in enumerate(
            zip(optimizer.variables, raw(optimizer.variables), strict=True)
        ):
            variables[f"optimizer/{name}/{place:04d}/{variable.name}"] = value
    return variables
