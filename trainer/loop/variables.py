"""The names under which a Task's and its optimizers' variables stand in a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from typing import Any

import keras

from trainer.errors import UsageError
from trainer.task import Task, raw

# Names that an error repeats.
_LISTED = 8


def task_variables(task: Task) -> dict[str, Any]:
    """Returns name -> tf.Variable of all models' weights.

    The place in the model keeps names unique. Keras' paths need not be, and they count the layers
    that the process has made before: "dense_3" in the second model that it loads.
    """
    return dict(zip(_names(task), raw(_weights(task)), strict=True))


def trained_variables(task: Task) -> dict[str, Any]:
    """Returns those of `task_variables` that training changes by gradients."""
    return {
        name: value
        for name, variable, value in zip(
            _names(task), _weights(task), raw(_weights(task)), strict=True
        )
        if variable.trainable
    }


def matching(task: Task, patterns: Sequence[str], key: str) -> list[str]:
    """Returns the names of `task_variables` whose path matches one of `patterns`.

    A path is the attribute of the Task and Keras' path in the model, "model/embed_0/embeddings"
    (without the model's own name, which may be a number that Keras counted). A pattern may name a
    folder of it, and has `*`, `?` and `[…]` as file names do.

    Raises:
      UsageError: a pattern matches nothing; `key` is the configuration key that it stands in.
    """
    names = _names(task)
    paths = list(paths_of(task).values())
    found: set[int] = set()
    for pattern in patterns:
        hits = {
            place
            for place, path in enumerate(paths)
            if fnmatch(path, pattern)
            or fnmatch(path, f"{pattern.rstrip('/')}/*")
            or names[place] == pattern
        }
        if not hits:
            there = ", ".join(paths[:_LISTED]) + (", …" if len(paths) > _LISTED else "")
            raise UsageError(f"{key} ({pattern}) matches no weight: there are {there}")
        found |= hits
    return [names[place] for place in sorted(found)]


def paths_of(task: Task) -> dict[str, str]:
    """Returns how people call each of `task_variables`, as `matching` takes it."""
    paths = (
        f"{attribute}/{variable.path.removeprefix(f'{model.name}/')}"
        for attribute, model in sorted(task.models().items())
        for variable in model.weights
    )
    return dict(zip(_names(task), paths, strict=True))


def freeze(task: Task, patterns: Sequence[str]) -> None:
    """Makes the matching weights stay as they are; a layer with none left stays in serving mode.

    Raises:
      UsageError: a pattern matches nothing, or nothing is left to train.
    """
    if not patterns:
        return
    frozen = set(matching(task, patterns, "freeze"))
    for name, variable in zip(_names(task), _weights(task), strict=True):
        if name in frozen:
            variable.trainable = False
    for model in task.models().values():
        for layer in model._flatten_layers(include_self=False):
            own = [v for v in layer.weights if v.name != "seed_generator_state"]
            if own and not any(v.trainable for v in own):
                layer.trainable = False
    if not task.trained_variables():
        raise UsageError(f"freeze ({','.join(patterns)}) leaves no weight to train")


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


def _weights(task: Task) -> list[Any]:
    return [v for _, model in sorted(task.models().items()) for v in model.weights]


def _names(task: Task) -> list[str]:
    return [
        f"{attribute}/{place:04d}/{variable.name}"
        for attribute, model in sorted(task.models().items())
        for place, variable in enumerate(model.weights)
    ]
