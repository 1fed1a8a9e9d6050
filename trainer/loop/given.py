"""What a Task gives to a step: looked at, and as the tensors that a loop of TensorFlow carries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from trainer.errors import UsageError
from trainer.task import Batch, Objective, Sums, raw


def of_rows(batch: Any, rows: int) -> Batch:
    """Returns what `batches` made.

    Raises:
      UsageError: it is not what was asked for.
    """
    if not isinstance(batch, Batch):
        raise UsageError(
            f"batches() returned a {type(batch).__name__}: return a trainer.task.Batch"
        )
    weight = tf.convert_to_tensor(batch.weight)
    if weight.dtype != tf.float32 or not weight.shape.is_compatible_with([rows]):
        raise UsageError(
            f"batches(): the weight is {weight.dtype.name}{weight.shape}: it was asked for {rows} "
            f"rows, so return float32 [{rows}]"
        )
    return Batch(batch.features, batch.label, tf.ensure_shape(weight, [rows]))


def packed(objectives: Sequence[Objective], sums: Mapping[str, Sums]) -> dict[str, Any]:
    """Returns what `train_step` gave as a nest of tensors.

    Raises:
      UsageError: it is something else than one Sums for each objective.
    """
    names = [o.name for o in objectives]
    if not isinstance(sums, Mapping) or not all(isinstance(s, Sums) for s in sums.values()):
        kind = "None" if sums is None else f"a {type(sums).__name__}"
        raise UsageError(
            f"train_step returned {kind}: return a dictionary with one trainer.task.Sums for each "
            f"of objectives(), {', '.join(names)}"
        )
    if sorted(sums) != sorted(names):
        raise UsageError(
            f"train_step returned {', '.join(sums) or 'nothing'}: return one Sums for each of "
            f"objectives(), {', '.join(names)}"
        )
    packed = {}
    for objective in objectives:
        part = sums[objective.name]
        found = [tuple(g.shape) for g in part.gradients]
        wanted = [tuple(v.shape) for v in objective.variables]
        if found != wanted:
            raise UsageError(
                f"train_step: objective {objective.name!r} has {len(wanted)} variables and got "
                f"{len(found)} gradients, or some of other shapes: return one each, in their order"
            )
        packed[objective.name] = (list(part.gradients), part.loss, part.weight)
    return packed


def unpacked(sums: Mapping[str, Any]) -> dict[str, Sums]:
    """Returns what `packed` was given."""
    return {name: Sums(*part) for name, part in sums.items()}


def nothing(objective: Objective) -> Any:
    """Returns the packed sums of no rows."""
    zeros = [tf.zeros(v.shape, v.dtype) for v in raw(objective.variables)]
    return zeros, tf.constant(0.0), tf.constant(0.0)
