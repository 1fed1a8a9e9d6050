"""The training step: gradients in each replica, one reduce, one decision, one update.

1. Each replica sums its weighted per-row losses over `microbatches` forward/backward passes.
2. One SUM all-reduce of gradients, losses and weights; dividing by the *global* weight sum makes
   partial and weighted batches exact.
3. The norm of the reduced gradients decides, equally on all replicas, whether the step counts: a
   non-finite one changes no weight and no slot anywhere.
4. Clipping by that norm, then the update, where Keras reduces nothing any more.

`TrainStep` runs many steps in one `tf.function` over a super-batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from trainer.config import TrainConfig
from trainer.loop import seeds
from trainer.task import Batch, Objective, Task


@dataclass(frozen=True)
class Outcome:
    """What a call of several steps returns, as tensors still (reading one waits for the device).

    loss: float32, mean over the finite steps (NaN if none). finite: int32, how many were.
    nonfinite_run: int32, how many steps in a row, up to the last, were not. gradient_norm: float32,
    of the last step, before clipping.
    """

    loss: tf.Tensor
    finite: tf.Tensor
    nonfinite_run: tf.Tensor
    gradient_norm: tf.Tensor


class TrainStep:
    """Steps of one Task under one strategy.

    optimizers: one an objective, built (slots exist) inside the strategy's scope.
    """

    def __init__(
        self,
        task: Task,
        strategy: tf.distribute.Strategy,
        optimizers: Mapping[str, keras.optimizers.Optimizer],
        config: TrainConfig,
    ) -> None:
        self._strategy = strategy
        self._objectives = tuple(task.objectives())
        self._optimizers = optimizers
        self._microbatches = config.microbatches
        self._clip_norm = config.clip_norm
        self._penalty = task.penalty
        # With several replicas XLA takes forward and backward only: the reduce stays outside.
        compiled = {"jit_compile": True, "autograph": False}
        self._sums = {
            o.name: tf.function(self._sums_of(o), **compiled)
            if config.jit == "on"
            else self._sums_of(o)
            for o in self._objectives
        }

    def __call__(
        self, batches: Any, *, first: int, count: int, step: int, nonfinite_run: tf.Tensor
    ) -> Outcome:
        """Runs `count` steps over batches first … first + count - 1 of a super-batch.

        Args:
          batches: (features, label, weight), each [steps, rows, …] a replica, as the strategy
            distributes values.
          first: the first batch.
          count: how many, > 0.
          step: number of the first step; decides dropout.
          nonfinite_run: int32, as the last call returned it.
        """
        # As tensors: a Python number would be traced anew at every call.
        numbers = (tf.constant(n, tf.int32) for n in (first, count, step))
        return Outcome(*self._many(batches, *numbers, nonfinite_run))

    @tf.function  # type: ignore[untyped-decorator,unused-ignore]
    def _many(
        self,
        batches: Any,
        first: tf.Tensor,
        count: tf.Tensor,
        step: tf.Tensor,
        nonfinite_run: tf.Tensor,
    ) -> tuple[tf.Tensor, ...]:
        total, finite, norm = tf.constant(0.0), tf.constant(0), tf.constant(0.0)
        for place in tf.range(count):
            loss, good, norm = self._one(batches, first + place, step + place)
            total += tf.where(good, loss, 0.0)
            finite += tf.cast(good, tf.int32)
            nonfinite_run = tf.where(good, 0, nonfinite_run + 1)
        return total / tf.cast(finite, tf.float32), finite, nonfinite_run, norm

    # AutoGraph carries every name assigned inside `for` as a loop variable, and per-replica values
    # cannot be one: hence a method of its own.
    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator,unused-ignore]
    def _one(
        self, batches: Any, place: tf.Tensor, step: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        gradients, loss, norm = self._strategy.run(self._gradients, args=(batches, place, step))
        first = self._first
        # The norm is finite exactly where all gradients are.
        good = tf.math.is_finite(first(norm)) & tf.math.is_finite(first(loss))

        def update() -> tf.Tensor:
            self._strategy.run(self._update, args=(gradients,))
            return tf.constant(0)

        tf.cond(good, update, lambda: tf.constant(0))
        return first(loss), good, first(norm)

    def _first(self, value: Any) -> tf.Tensor:
        """Any replica's value, where all are equal."""
        return self._strategy.experimental_local_results(value)[0]

    def _gradients(
        self, batches: Any, place: tf.Tensor, step: tf.Tensor
    ) -> tuple[list[list[tf.Tensor]], tf.Tensor, tf.Tensor]:
        """In one replica: reduced and clipped gradients by objective, global loss, global norm."""
        context = tf.distribute.get_replica_context()
        features, label, weight = batches
        batch = Batch({k: v[place] for k, v in features.items()}, label[place], weight[place])
        replica = context.replica_id_in_sync_group
        parts = [self._local_sums(o, batch, step, replica) for o in self._objectives]
        reduced = context.all_reduce(
            tf.distribute.ReduceOp.SUM, [t for part in parts for t in part]
        )
        gradients, losses = [], []
        for part in parts:
            *sums, loss, weights = reduced[: len(part)]
            reduced = reduced[len(part) :]
            gradients.append([value / weights for value in sums])
            losses.append(loss / weights)
        norm = tf.linalg.global_norm([g for group in gradients for g in group])
        if self._clip_norm is not None:
            factor = self._clip_norm / tf.maximum(norm, self._clip_norm)
            gradients = [[g * factor for g in group] for group in gradients]
        return gradients, tf.add_n(losses), norm

    def _local_sums(
        self, objective: Objective, batch: Batch, step: tf.Tensor, replica: Any
    ) -> list[tf.Tensor]:
        """This replica's sums over all microbatches: gradients, loss, weight."""
        sums_of = self._sums[objective.name]
        if self._microbatches == 1:
            return list(sums_of(batch.features, batch.label, batch.weight, step, replica, 0))
        rows = batch.label.shape[0] // self._microbatches

        def cut(tensor: tf.Tensor, part: tf.Tensor) -> tf.Tensor:
            return tf.ensure_shape(
                tensor[part * rows : (part + 1) * rows], [rows, *tensor.shape[1:]]
            )

        def add(part: tf.Tensor, *sums: tf.Tensor) -> tuple[tf.Tensor, ...]:
            features = {name: cut(value, part) for name, value in batch.features.items()}
            label, weight = cut(batch.label, part), cut(batch.weight, part)
            more = sums_of(features, label, weight, step, replica, part)
            return (part + 1, *(a + b for a, b in zip(sums, more, strict=True)))

        zeros = [tf.zeros(v.shape, v.dtype) for v in raw(objective.variables)]
        start = (tf.constant(0), *zeros, tf.constant(0.0), tf.constant(0.0))
        _, *sums = tf.while_loop(lambda part, *_: part < self._microbatches, add, start)
        return list(sums)

    def _sums_of(self, objective: Objective) -> Callable[..., list[tf.Tensor]]:
        """Returns the forward and backward pass of an objective over one microbatch."""

        def sums_of(
            features: Any, label: Any, weight: Any, step: Any, replica: Any, part: Any
        ) -> list[tf.Tensor]:
            weights = tf.reduce_sum(weight)
            with seeds.at(step, replica, part), tf.GradientTape() as tape:
                per_row = _one_a_row(objective, Batch(features, label, weight))
                # The penalty counts once a global batch: over all replicas and microbatches the
                # weights add up to what the sum is divided by.
                loss = tf.reduce_sum(per_row * weight) + self._penalty() * weights
            variables = raw(objective.variables)
            gradients = tape.gradient(loss, variables)
            if all(g is None for g in gradients):
                raise ValueError(
                    f"objective {objective.name!r} trains nothing: its loss depends on none of its "
                    f"{len(variables)} variables"
                )
            # A part may be out of use in this loss, as a discriminator is in the generator's.
            found = (
                tf.zeros_like(v) if g is None else tf.convert_to_tensor(g)
                for v, g in zip(variables, gradients, strict=True)
            )
            return [*found, loss, weights]

        return sums_of

    def _update(self, gradients: Sequence[Sequence[tf.Tensor]]) -> None:
        for objective, group in zip(self._objectives, gradients, strict=True):
            self._optimizers[objective.name].apply(list(group), list(objective.variables))


def _one_a_row(objective: Objective, batch: Batch) -> tf.Tensor:
    """Returns the objective's loss as float32 [rows].

    [rows, 1] or a mean would be broadcast against the weights, and train something else.
    """
    loss = tf.convert_to_tensor(objective.loss(batch, True))
    if not loss.shape.is_compatible_with(batch.weight.shape):
        raise ValueError(
            f"objective {objective.name!r}: the loss has shape {loss.shape}, not "
            f"{batch.weight.shape}: return one value a row, not averaged "
            "(a loss of [rows, 1] needs [:, 0])"
        )
    return tf.ensure_shape(tf.cast(loss, tf.float32), batch.weight.shape)


def raw(variables: Sequence[Any]) -> list[Any]:
    """Returns the tf.Variable behind each Keras variable (itself, if it is one already)."""
    return [v.value if isinstance(v, keras.Variable) else v for v in variables]
