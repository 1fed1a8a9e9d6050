"""What a Task's `objectives()` must be, so that all that is trained is saved, and once.

A checkpoint holds the weights of the Task's models. A variable elsewhere would be trained,
lost, and begin anew after a restart, without a word.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import keras

from trainer.errors import UsageError
from trainer.task import Objective, Task, raw


def objectives_of(task: Task) -> tuple[Objective, ...]:
    """Returns the Task's objectives, looked at.

    Raises:
      UsageError: there is none, one is no Objective, shares its name, has no variables, or has some
        twice or from outside of the Task's models; or its optimizer is not made by a function.
    """
    returned: Any = task.objectives()
    if not isinstance(returned, Iterable):
        raise UsageError(
            f"objectives() returned {_kind(returned)}: return a list of trainer.task.Objective"
        )
    objectives = tuple(returned)
    if not objectives:
        raise UsageError("objectives() returned none: return a list with at least one Objective")
    names: set[str] = set()
    for objective in objectives:
        if not isinstance(objective, Objective):
            raise UsageError(
                f"objectives() returned {_kind(objective)} in its list: "
                "each must be a trainer.task.Objective"
            )
        if objective.name in names:
            raise UsageError(f"objectives(): two are called {objective.name!r}")
        names.add(objective.name)
        _check(objective, _saved(task))
    return objectives


def _check(objective: Objective, saved: set[int]) -> None:
    where = f"objective {objective.name!r}"
    variables: Any = objective.variables
    # A single variable can be iterated over, too: row by row.
    if not isinstance(variables, Sequence):
        raise UsageError(f"{where}: variables is {_kind(variables)}: give a list of variables")
    if not variables:
        raise UsageError(f"{where} has no variables to train")
    seen: set[int] = set()
    for variable, value in zip(variables, raw(variables), strict=True):
        name = getattr(variable, "path", None) or getattr(variable, "name", _kind(variable))
        if id(value) not in saved:
            raise UsageError(
                f"{where} trains {name!r}, which belongs to no Keras model that is an attribute of "
                "the task: it would not be saved; put it into a keras.Model attribute"
            )
        if not isinstance(variable, keras.Variable):
            raise UsageError(
                f"{where}: {name!r} is the tf.Variable behind a Keras variable: give the one that "
                "model.trainable_variables has"
            )
        if id(value) in seen:
            raise UsageError(f"{where} lists {name!r} twice, which would be updated twice")
        seen.add(id(value))
    if objective.optimizer is not None and not callable(objective.optimizer):
        raise UsageError(
            f"{where}: optimizer is {_kind(objective.optimizer)}: optimizer must be a function "
            "that makes one: lambda: keras.optimizers.Adam()"
        )


def _saved(task: Task) -> set[int]:
    return {id(value) for model in task.models().values() for value in raw(model.weights)}


def _kind(value: Any) -> str:
    return "None" if value is None else type(value).__name__
