"""What a request looks like, and the module that answers it: preprocessing, then the model.

`serving_default` takes the raw columns as tensors, `serving_examples` serialized
tf.train.Examples; both run the Task's `preprocess` and `serve`, the code that training ran. Null is
NaN, the smallest int64 or the empty string; in an Example a column that is absent.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Sequence
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import tensorflow as tf

from trainer.data.blocks import NULL_INT
from trainer.data.manifest import Feature
from trainer.errors import UsageError
from trainer.task import Task

TENSORS, EXAMPLES = "serving_default", "serving_examples"
_DTYPES = {"float32": tf.float32, "int64": tf.int64, "string": tf.string}
_NULLS = {"float32": np.nan, "int64": NULL_INT, "string": ""}


def input_names(features: Sequence[Feature]) -> dict[str, str]:
    """Returns each column's name in `serving_default`: its own, as far as TensorFlow allows.

    A SavedModel lower-cases names, turns all but letters, digits and "_" into "_", and fails on
    words of Python and on two names that become one; so they are changed here, and unique.
    """
    names: dict[str, str] = {}
    for feature in features:
        plain = re.sub(r"[^0-9a-z_]", "_", feature.name.lower())
        if not plain[:1].isalpha():
            plain = f"x_{plain}"
        if keyword.iskeyword(plain) or plain == "self":
            plain += "_"
        name, number = plain, 2
        while name in names.values():
            name, number = f"{plain}_{number}", number + 1
        names[feature.name] = name
    return names


class Served(tf.Module):
    """A Task's inference with its two signatures, holding only what they need."""

    def __init__(self, task: Task, features: Sequence[Feature]) -> None:
        """Traces both signatures.

        Args:
          task: built and restored.
          features: the raw columns that it takes.

        Raises:
          UsageError: a column of variable length, which has no tensor of fixed rank.
        """
        super().__init__()
        ragged = [f.name for f in features if None in f.shape]
        if ragged:
            raise UsageError(
                f"the task takes columns of variable length ({', '.join(ragged)}), which cannot be "
                "exported: pad them to a fixed length in the data"
            )
        self._task_parts = _resources(task)
        names = input_names(features)
        inputs = {
            names[f.name]: tf.TensorSpec([None, *f.shape], _DTYPES[f.dtype], names[f.name])
            for f in features
        }
        parsing = {
            f.name: tf.io.FixedLenFeature(f.shape, _DTYPES[f.dtype], _null(f)) for f in features
        }

        def answer(raw: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
            return {k: tf.identity(v, k) for k, v in task.serve(task.preprocess(raw)).items()}

        def tensors(**given: tf.Tensor) -> dict[str, tf.Tensor]:
            return answer({column: given[name] for column, name in names.items()})

        def examples(examples: tf.Tensor) -> dict[str, tf.Tensor]:
            return answer(tf.io.parse_example(examples, parsing))

        serialized = tf.TensorSpec([None], tf.string, "examples")
        self.functions = {
            TENSORS: tf.function(tensors).get_concrete_function(**inputs),
            EXAMPLES: tf.function(examples).get_concrete_function(serialized),
        }
        # Variables rather than Keras models: the file then needs no Keras to be loaded.
        self._weights = [list(function.variables) for function in self.functions.values()]


def _null(feature: Feature) -> Any:
    """The value of an absent column: one null, or a list of them."""
    shape = [size or 0 for size in feature.shape]
    return np.full(shape, _NULLS[feature.dtype]).tolist()


def _resources(task: Task) -> list[Any]:
    """Returns the lookup tables and the like that hang anywhere on the Task.

    A function that uses one can only be saved together with it, and a Task is a plain object whose
    attributes TensorFlow does not follow.
    """
    resource = tf.saved_model.experimental.TrackableResource
    found: list[Any] = []
    seen: set[int] = set()
    waiting: list[Any] = [task]
    while waiting:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, type | ModuleType | FunctionType | np.ndarray):
            continue
        seen.add(id(value))
        if isinstance(value, resource):
            found.append(value)
        waiting.extend(_held_by(value))
    return found


def _held_by(value: Any) -> Iterable[Any]:
    if isinstance(value, MethodType):
        return [value.__self__]
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, list | tuple | set | frozenset):
        return value
    if isinstance(value, tf.Tensor | tf.Variable | str | bytes):
        return ()
    return getattr(value, "__dict__", {}).values()
