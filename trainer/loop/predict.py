"""What the model says of a whole split: each row exactly once, the same on any number of replicas.

All replicas take equal steps; the tail is filled with copies of a row that are cut off again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from trainer.data.blocks import Block, concat
from trainer.data.dataset import Dataset
from trainer.data.input import Columns, padded
from trainer.data.rows import DamagedShard, read_rows
from trainer.data.weighting import check_weights
from trainer.errors import UsageError
from trainer.task import Task, named_rows


@dataclass(frozen=True)
class Predictions:
    """One entry a row, by ascending row id.

    row_id: int64 [rows]. label: float32 or int32 [rows]. weight: float32 [rows], of the weight
    column (1 without one). outputs: what `Task.serve` returned, each [rows, …].
    """

    row_id: npt.NDArray[np.int64]
    label: npt.NDArray[Any]
    weight: npt.NDArray[np.float32]
    outputs: dict[str, npt.NDArray[Any]]


def rehearse(task: Task, strategy: tf.distribute.Strategy, columns: Columns, rows: int) -> None:
    """Traces `task.serve`, so that what it gets wrong is said before the training, not after.

    rows: of one replica.

    Raises:
      UsageError: it returns something else than tensors by name, a row each, or an output that
        evaluation reads has another shape than evaluation needs.
    """
    signature = columns.signature(rows)
    zeros = {name: tf.zeros(spec.shape, spec.dtype) for name, spec in signature.items()}
    served: list[Any] = []

    def one(arrays: dict[str, tf.Tensor]) -> None:
        features = named_rows("preprocess", task.preprocess(columns.named(arrays)), rows)
        served.append(task.serve(features))

    def once(arrays: dict[str, tf.Tensor]) -> None:
        strategy.run(one, args=(arrays,))

    def traced(autograph: bool) -> None:
        tf.function(once, autograph=autograph).get_concrete_function(
            strategy.experimental_distribute_values_from_function(lambda context: zeros)
        )

    try:  # to rewrite everybody's code takes several times as long as to trace it
        traced(autograph=False)
    except tf.errors.OperatorNotAllowedInGraphError:  # an `if` or `for` over tensors
        traced(autograph=True)
    outputs = named_rows("serve", served[0], rows)
    label = columns.dataset.manifest.label
    name = label.output
    if name in outputs:
        wanted = [rows, len(label.classes or ())] if label.kind == "multiclass" else [rows]
        found = tf.TensorShape(outputs[name].shape)
        if not found.is_compatible_with(wanted):
            first = ": take [:, 0]" if found.rank == 2 and found[1] == 1 else ""
            raise UsageError(
                f"serve(): {name!r} has shape {found}, evaluating a {label.kind} label needs "
                f"{tf.TensorShape(wanted)}{first}"
            )


def predict(
    task: Task,
    strategy: tf.distribute.Strategy,
    dataset: Dataset,
    split: str,
    *,
    batch: int = 4096,
    progress: Callable[[int, int], None] | None = None,
) -> Predictions:
    """Returns the outputs of `task` for every row of `split`; all workers call it.

    Args:
      task: built, with its weights.
      strategy: the one in whose scope it was built.
      dataset: where the rows are.
      split: which of them.
      batch: rows a step, over all replicas (rounded up to a multiple of them).
      progress: called with (rows done, rows in all).

    Raises:
      UsageError: the split is not there, has no weights, or a shard is damaged.
    """
    dataset.check_sizes(split)
    check_weights(dataset, split)
    rows = dataset.split(split).rows
    replicas = strategy.num_replicas_in_sync
    each = -(-min(batch, rows) // replicas)
    columns = task.columns(dataset)

    @tf.function
    def serve(arrays: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        return strategy.run(lambda a: task.serve(task.preprocess(columns.named(a))), args=(arrays,))

    parts: list[dict[str, Any]] = []
    row_id: list[Any] = []
    labels: list[Any] = []
    weights: list[Any] = []
    done = 0
    try:
        for block in rebatch(read_rows(dataset, split), each * replicas):
            arrays = columns.arrays(block)
            row_id.append(block.row_id)
            labels.append(arrays["label"])
            weights.append(arrays["weight"])
            outputs = serve(_distribute(strategy, padded(arrays, each * replicas), each))
            parts.append({k: _gathered(strategy, v)[: block.rows] for k, v in outputs.items()})
            done += block.rows
            if progress is not None:
                progress(done, rows)
    except DamagedShard as error:
        raise UsageError(str(error)) from None
    order = np.argsort(np.concatenate(row_id), kind="stable")
    return Predictions(
        np.concatenate(row_id)[order],
        np.concatenate(labels)[order],
        np.concatenate(weights)[order],
        {k: np.concatenate([part[k] for part in parts])[order] for k in parts[0]},
    )


def rebatch(blocks: Iterator[Block], rows: int) -> Iterator[Block]:
    """Yields blocks of `rows` rows, the last one of what is left."""
    held: list[Block] = []
    count = 0
    for block in blocks:
        held.append(block)
        count += block.rows
        while count >= rows:
            whole = concat(held)
            yield whole.slice(0, rows)
            held = [whole.slice(rows, whole.rows)]
            count -= rows
    if count:
        yield concat(held)


def _distribute(strategy: tf.distribute.Strategy, arrays: dict[str, Any], each: int) -> Any:
    """Hands every replica of this process its `each` rows."""

    def of(context: tf.distribute.experimental.ValueContext) -> dict[str, tf.Tensor]:
        start = context.replica_id_in_sync_group * each
        return {k: tf.convert_to_tensor(v[start : start + each]) for k, v in arrays.items()}

    return strategy.experimental_distribute_values_from_function(of)


def _gathered(strategy: tf.distribute.Strategy, value: Any) -> npt.NDArray[Any]:
    """Returns all replicas' rows, in the order of the replicas."""
    if strategy.num_replicas_in_sync == 1:
        return np.asarray(strategy.experimental_local_results(value)[0])
    return np.asarray(strategy.gather(value, axis=0))
