"""Evaluation during training: loss and the Task's metrics over a whole split, on all replicas.

Each replica reads a range of rows of its own; all take equal steps, and what fills up the last ones
has weight 0. So the figures are those of one replica. All workers call it together: the state of a
Keras metric is summed over replicas when it is read, which is a collective.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from trainer.data.dataset import Dataset
from trainer.data.input import padded
from trainer.data.rows import DamagedShard, read_rows
from trainer.data.weighting import check_weights
from trainer.errors import UsageError
from trainer.loop.predict import rebatch
from trainer.task import Batch, Task, named_rows, one_a_row, penalty_of

Figures = dict[str, float]

# Keys of a line of metrics.jsonl that are no figures.
TAKEN = ("step", "split")


class Evaluation:
    """Evaluates `task` on a split, as often as it is called.

    Args:
      task: built, in the strategy's scope.
      strategy: the one.
      dataset: where the rows are.
      split: which of them.
      batch: rows a step, over all replicas (rounded up to a multiple of them).
      replicas: the numbers of the replicas that this process drives.
      go_on: called before each step, by all workers alike; False ends the evaluation.

    Raises:
      UsageError: the split is not there, damaged or without weights, or `Task.metrics` has a
        "loss".
    """

    def __init__(
        self,
        task: Task,
        strategy: tf.distribute.Strategy,
        dataset: Dataset,
        split: str,
        *,
        batch: int,
        replicas: range | None = None,
        go_on: Callable[[], bool] = lambda: True,
    ) -> None:
        dataset.check_sizes(split)
        check_weights(dataset, split)
        self.split = split
        self._task = task
        self._strategy = strategy
        self._dataset = dataset
        self._columns = task.columns(dataset)
        self._count = strategy.num_replicas_in_sync
        self._local = replicas if replicas is not None else range(self._count)
        self._rows = dataset.split(split).rows
        self._each = -(-min(batch, self._rows) // self._count)
        self._go_on = go_on
        with strategy.scope():
            self._losses = {o.name: keras.metrics.Mean(o.name) for o in task.objectives()}
            self._metrics = _checked(task.metrics())
        taken = {*TAKEN, "loss", *(f"loss/{name}" for name in self._losses)}
        if clash := sorted(taken & self._metrics.keys()):
            raise UsageError(
                f"metrics(): {clash[0]!r} is a name that the loop itself writes: take another"
            )

    def rehearse(self) -> None:
        """Traces one step, so that what the Task gets wrong is said before the training.

        Raises:
          UsageError: what `predictions` and the metrics get does not fit.
        """
        signature = self._columns.signature(self._each)
        zeros = {name: tf.zeros(spec.shape, spec.dtype) for name, spec in signature.items()}
        self._update.get_concrete_function(
            self._strategy.experimental_distribute_values_from_function(lambda context: zeros)
        )

    @property
    def names(self) -> list[str]:
        """What the figures are called."""
        several = [f"loss/{name}" for name in self._losses] if len(self._losses) > 1 else []
        return ["loss", *several, *self._metrics]

    def __call__(self, beat: Callable[[], None] = lambda: None) -> Figures | None:
        """Returns figures by name, equal on all workers; None if it was told not to go on.

        beat: called after each step.

        Raises:
          UsageError: a shard is damaged.
        """
        for metric in (*self._losses.values(), *self._metrics.values()):
            metric.reset_state()
        feeds = [self._batches(replica) for replica in self._local]
        for _ in range(-(-self._longest() // self._each)):
            if not self._go_on():
                return None
            parts = iter([next(feed) for feed in feeds])
            self._update(
                self._strategy.experimental_distribute_values_from_function(
                    lambda context, parts=parts: next(parts)
                )
            )
            beat()
        losses = {name: float(metric.result()) for name, metric in self._losses.items()}
        figures = {"loss": sum(losses.values())}
        if len(losses) > 1:
            figures |= {f"loss/{name}": loss for name, loss in losses.items()}
        return figures | {name: float(m.result()) for name, m in self._metrics.items()}

    @tf.function(autograph=False)  # type: ignore[untyped-decorator,unused-ignore]
    def _update(self, arrays: Any) -> None:
        self._strategy.run(self._update_one, args=(arrays,))

    def _update_one(self, arrays: dict[str, tf.Tensor]) -> None:
        features = self._task.preprocess(self._columns.named(arrays))
        features = named_rows("preprocess", features, self._each)
        batch = Batch(features, arrays["label"], arrays["weight"])
        for objective in self._task.objectives():
            loss = one_a_row(objective.name, objective.loss(batch, False), batch.weight)
            # The penalty is part of the loss, as it is in training.
            self._losses[objective.name].update_state(loss + penalty_of(self._task), batch.weight)
        if self._metrics:
            said = self._task.predictions(batch)
            for metric in self._metrics.values():
                metric.update_state(batch.label, said, sample_weight=batch.weight)

    def _range(self, replica: int) -> tuple[int, int]:
        return (
            replica * self._rows // self._count,
            (replica + 1) * self._rows // self._count,
        )

    def _longest(self) -> int:
        return max(end - start for start, end in map(self._range, range(self._count)))

    def _batches(self, replica: int) -> Iterator[dict[str, Any]]:
        """Yields a replica's rows in steps of equal size, then rows of weight 0."""
        start, end = self._range(replica)
        # A replica without rows borrows one that it does not count.
        blocks = read_rows(self._dataset, self.split, start, max(end, start + 1))
        try:
            for block in rebatch(blocks, self._each):
                arrays = padded(self._columns.arrays(block), self._each)
                if end == start:
                    arrays["weight"] = np.zeros(self._each, np.float32)
                yield arrays
        except DamagedShard as error:
            raise UsageError(str(error)) from None
        while True:
            yield {**arrays, "weight": np.zeros(self._each, np.float32)}


def _checked(metrics: Any) -> dict[str, keras.metrics.Metric]:
    """Returns what `Task.metrics` gave, if it is what it must be."""
    if not isinstance(metrics, Mapping):
        raise UsageError(
            f"metrics() returned a {type(metrics).__name__}: return a mapping of names to Keras "
            'metrics, as {"auc": keras.metrics.AUC()}'
        )
    for name, metric in metrics.items():
        if not isinstance(metric, keras.metrics.Metric):
            raise UsageError(
                f"metrics(): {name!r} is a {type(metric).__name__}, not a Keras metric "
                "(keras.metrics.Metric)"
            )
    return dict(metrics)
