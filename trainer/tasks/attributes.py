"""Weights that a Task holds where the loop does not look: they would be neither trained nor saved.

The loop trains, averages and saves the Keras models that are attributes of a Task. A model in a
list, a bare layer or a variable of its own is refused, unless one of those models has it as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import keras
import tensorflow as tf

from trainer.errors import UsageError
from trainer.task import Task, raw

# How tf.Module keeps account of the same attributes once more.
_OF_MODULE = ("_self_", "_obj_")
# They define `build` only to look at shapes (Normalization: if it was given its statistics; one
# that was adapted has weights already).
_WITHOUT_WEIGHTS = (
    keras.layers.Add,
    keras.layers.Average,
    keras.layers.Concatenate,
    keras.layers.Dot,
    keras.layers.Maximum,
    keras.layers.Minimum,
    keras.layers.Multiply,
    keras.layers.Normalization,
    keras.layers.TextVectorization,
)


def check_attributes(task: Task, name: str) -> None:
    """Looks at a built Task's attributes, and into lists, tuples and dicts among them.

    Raises:
      UsageError: one holds weights that belong to none of `task.models()`; `name` is the Task's.
    """
    models = task.models()
    saved = {id(value) for model in models.values() for value in raw(model.weights)}
    for attribute, value in vars(task).items():
        if attribute in models or attribute.startswith(_OF_MODULE):
            continue
        for place, held in _all_in(attribute, value):
            weights = _weights(held)
            if weights is None or (weights and all(id(w) in saved for w in raw(weights))):
                continue
            kind = type(held).__name__
            do = "put it into a keras.Model that is an attribute of the task"
            if isinstance(held, keras.Model):
                do = "make it an attribute of its own, self.NAME = model"
            raise UsageError(
                f"--task {name}: build(data) left {place} ({kind}) outside of the task's Keras "
                f"models, where it would be neither trained nor saved: {do}"
            )


def _all_in(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yields everything in an attribute, with how to write it."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _all_in(f"{place}[{key!r}]", item)
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from _all_in(f"{place}[{number}]", item)
    else:
        yield place, value


def _weights(value: Any) -> list[Any] | None:
    """Returns the weights in a value, or None if it is nothing that has any."""
    if isinstance(value, tf.Variable | keras.Variable):
        return [value]
    if isinstance(value, keras.Model):
        return list(value.weights)
    if isinstance(value, keras.Layer):
        # One that is called first in the step makes its weights there.
        late = not value.built and type(value).build is not keras.Layer.build
        late = late and not isinstance(value, _WITHOUT_WEIGHTS)
        return list(value.weights) if value.weights or late else None
    return None
