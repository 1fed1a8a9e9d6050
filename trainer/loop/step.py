"""The training step: gradients in each replica, one reduce, one decision, one update.

1. Each replica sums its weighted per-row losses over `microbatches` forward/backward passes.
2. One SUM all-reduce of gradients, losses and weights; dividing by the *global* weight sum makes
   partial and weighted batches exact.
3. The norm of the reduced gradients decides, equally on all replicas, whether the step counts: a
   non-finite one changes no weight, no slot and no average anywhere.
4. Clipping by that norm, then the update, where Keras reduces nothing any more.

`TrainStep` runs many steps in one `tf.function` over a super-batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from trainer.config import TrainConfig
from trainer.errors import UsageError
from trainer.loop import fused, given, seeds
from trainer.loop.ema import Ema
from trainer.loop.objectives import objectives_of
from trainer.loop.precision import LossScale
from trainer.loop.reduce import Reduce
from trainer.task import Batch, Sums, Task

# Characters of XLA's account that an error repeats.
_LONGEST_REASON = 200


class CannotCompile(UsageError):
    """XLA has no code for something in the step."""

    def __init__(self, error: tf.errors.OpError) -> None:
        # Its account begins with where in our code the call stands; the reason comes after.
        lines = [line.strip() for line in str(error.message).splitlines()]
        said = [
            line
            for line in lines
            if line and not line.startswith(("File ", "[[", "Detected at", "The op is"))
        ]
        self.reason = (said[0] if said else type(error).__name__)[:_LONGEST_REASON]
        super().__init__(f"jit (on): XLA cannot compile this step ({self.reason}): pass --jit off")


@dataclass(frozen=True)
class Outcome:
    """What a call of several steps returns, as tensors still (reading one waits for the device).

    losses: float32 [objectives], means over the finite steps (NaN if none). finite: int32, how many
    were. nonfinite_run: int32, how many steps in a row, up to the last, were not. gradient_norm:
    float32, of the last step, before clipping. reduce_seconds: float32, in all-reduces, waiting for
    slower replicas included (0 with one replica). learning_rate: float32, the first objective's,
    of the step after.
    """

    losses: tf.Tensor
    finite: tf.Tensor
    nonfinite_run: tf.Tensor
    gradient_norm: tf.Tensor
    reduce_seconds: tf.Tensor
    learning_rate: tf.Tensor


class TrainStep:
    """Steps of one Task under one strategy.

    optimizers: one an objective, built (slots exist) inside the strategy's scope. scale: float16's.
    ema: averages that follow the weights. compiled: whether XLA compiles the steps; all of a call
    with one replica, else forward and backward of each.
    """

    def __init__(
        self,
        task: Task,
        strategy: tf.distribute.Strategy,
        optimizers: Mapping[str, keras.optimizers.Optimizer],
        config: TrainConfig,
        *,
        scale: LossScale | None = None,
        ema: Ema | None = None,
    ) -> None:
        self._task = task
        self._strategy = strategy
        self._objectives = objectives_of(task)
        self.objectives = tuple(o.name for o in self._objectives)
        self._optimizers = optimizers
        self._microbatches = config.microbatches
        self._clip_norm = config.clip_norm
        self._rows = config.global_batch // strategy.num_replicas_in_sync
        self._reduce = Reduce(
            strategy.num_replicas_in_sync,
            config.reduce_dtype,
            timed=not isinstance(strategy, tf.distribute.TPUStrategy),
        )
        self._scale = scale
        self._ema = ema
        self.compiled = config.jit == "on"
        self._graphs: dict[bool, Any] = {}

    def __call__(
        self, batches: Any, *, first: int, count: int, step: int, nonfinite_run: tf.Tensor
    ) -> Outcome:
        """Runs `count` steps over batches first … first + count - 1 of a super-batch.

        Args:
          batches: (features, label, weight), each [steps, rows, …] a replica, as the strategy
            distributes values; None if the task feeds itself.
          first: the first batch.
          count: how many, > 0.
          step: number of the first step; decides dropout.
          nonfinite_run: int32, as the last call returned it.
        """
        # As a tensor: a Python number would be traced anew at every call.
        inputs = (batches, tf.constant([first, count, step], tf.int32), nonfinite_run)
        try:
            return Outcome(*self._traced(inputs)(*inputs))
        except (tf.errors.InvalidArgumentError, tf.errors.UnimplementedError) as error:
            if self.compiled and "xla" in str(error.message).lower():
                raise CannotCompile(error) from None
            raise

    def _traced(self, inputs: tuple[Any, ...]) -> Any:
        """Returns the steps as one graph; all calls of a run have inputs of one shape.

        Kept, as to find it anew by the types of its arguments takes longer than a step.
        """
        if self.compiled not in self._graphs:
            many = self._many_compiled if self._whole else self._many_plain
            self._graphs[self.compiled] = many.get_concrete_function(*inputs)
        return self._graphs[self.compiled]

    @property
    def _whole(self) -> bool:
        """Whether XLA compiles all of a call."""
        return self.compiled and self._strategy.num_replicas_in_sync == 1

    # Without AutoGraph: it would wrap what a Task raises in its own account of it, and carry every
    # name assigned in a loop, per-replica values too, which cannot be carried.
    @tf.function(autograph=False)  # type: ignore[untyped-decorator,unused-ignore]
    def _many_plain(self, *args: Any) -> tuple[tf.Tensor, ...]:
        return self._many(*args)

    @tf.function(autograph=False, jit_compile=True)  # type: ignore[untyped-decorator,unused-ignore]
    def _many_compiled(self, *args: Any) -> tuple[tf.Tensor, ...]:
        return self._many(*args)

    def _many(
        self,
        batches: Any,
        numbers: tf.Tensor,
        nonfinite_run: tf.Tensor,
    ) -> tuple[tf.Tensor, ...]:
        first, count, step = tf.unstack(numbers)

        def body(
            place: tf.Tensor, total: Any, finite: Any, run: Any, norm: Any, seconds: Any
        ) -> Any:
            losses, good, norm, more = self._one(batches, first + place, step + place)
            return (
                place + 1,
                total + tf.where(good, losses, 0.0),
                finite + tf.cast(good, tf.int32),
                tf.where(good, 0, run + 1),
                norm,
                seconds + more,
            )

        start = (
            tf.constant(0),
            tf.zeros([len(self._objectives)]),
            tf.constant(0),
            nonfinite_run,
            tf.constant(0.0),
            tf.constant(0.0),
        )
        _, total, finite, run, norm, seconds = tf.while_loop(
            lambda place, *_: place < count, body, start
        )
        rate = next(iter(self._optimizers.values())).learning_rate
        rate = tf.cast(tf.convert_to_tensor(rate), tf.float32)
        return total / tf.cast(finite, tf.float32), finite, run, norm, seconds, rate

    def _one(
        self, batches: Any, place: tf.Tensor, step: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
        with ExitStack() as prepared:
            for optimizer in self._optimizers.values():
                if isinstance(optimizer, fused.Adam):
                    prepared.enter_context(optimizer.prepared())
            gradients, losses, norm, seconds = self._strategy.run(
                self._gradients, args=(batches, place, step)
            )
            first = self._first
            # The norm is finite exactly where all gradients are.
            good = tf.math.is_finite(first(norm)) & tf.reduce_all(tf.math.is_finite(first(losses)))

            def update() -> tf.Tensor:
                self._strategy.run(self._update, args=(gradients,))
                return tf.constant(0)

            tf.cond(good, update, lambda: tf.constant(0))
        if self._scale is not None:
            self._scale.note(good)
        return first(losses), good, first(norm), first(seconds)

    def _first(self, value: Any) -> tf.Tensor:
        """Any replica's value, where all are equal."""
        return self._strategy.experimental_local_results(value)[0]

    def _gradients(
        self, batches: Any, place: tf.Tensor, step: tf.Tensor
    ) -> tuple[dict[str, list[tf.Tensor]], tf.Tensor, tf.Tensor, tf.Tensor]:
        """In one replica: reduced and clipped gradients by objective, losses, norm, seconds."""
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        batch = self._batch(batches, place, step, replica)
        scale = self._multiple()
        local = self._local_sums(batch, step, replica, scale)
        sums, seconds = self._reduce(local)
        gradients, losses, squares = {}, [], []
        for name, part in sums.items():
            # A batch in which no row counts teaches nothing.
            inverse = tf.math.divide_no_nan(1.0, part.weight * scale)
            gradients[name] = [value * inverse for value in part.gradients]
            losses.append(tf.math.divide_no_nan(part.loss, part.weight))
            squares += _squares(gradients[name], self._whole)
        norm = tf.sqrt(tf.add_n(squares))
        if self._clip_norm is not None:
            factor = self._clip_norm / tf.maximum(norm, self._clip_norm)
            gradients = {name: [g * factor for g in group] for name, group in gradients.items()}
        return gradients, tf.stack(losses), norm, seconds

    def _multiple(self) -> tf.Tensor:
        """What gradients are a multiple of: float16's scale of a *mean* loss, applied to sums."""
        if self._scale is None:
            return tf.constant(1.0)
        replicas = self._strategy.num_replicas_in_sync
        return self._scale.value / float(self._rows * replicas)

    def _batch(self, batches: Any, place: tf.Tensor, step: tf.Tensor, replica: Any) -> Batch:
        """Returns this replica's rows of a step."""
        if self._task.feeds_itself:
            with seeds.at(step, replica):
                made = self._task.batches(step, replica * self._rows + tf.range(self._rows))
            return given.of_rows(made, self._rows)
        # Not value[place]: XLA would compile anew for every place where a call begins.
        cut = tf.gather if self._whole else lambda value, at: value[at]
        return Batch(*tf.nest.map_structure(lambda value: cut(value, place), batches))

    def _local_sums(
        self, batch: Batch, step: tf.Tensor, replica: Any, scale: tf.Tensor
    ) -> dict[str, Sums]:
        """This replica's sums over all micro-batches, by objective."""
        whole = (batch.features, batch.label, batch.weight)

        def sums_of(values: Any, part: tf.Tensor) -> dict[str, Any]:
            with seeds.at(step, replica, part):
                sums = self._task.train_step(Batch(*values), scale)
            return given.packed(self._objectives, sums)

        if self.compiled and self._strategy.num_replicas_in_sync > 1:
            # XLA takes forward and backward only: the reduce stays outside.
            sums_of = tf.function(sums_of, jit_compile=True, autograph=False)
        if self._microbatches == 1:
            return given.unpacked(sums_of(whole, tf.constant(0)))
        rows = self._rows // self._microbatches

        # One index, as XLA cannot cut between places that it does not know.
        stacked = tf.nest.map_structure(
            lambda value: tf.reshape(value, [self._microbatches, rows, *value.shape[1:]]), whole
        )

        def add(part: tf.Tensor, sums: Any) -> tuple[tf.Tensor, Any]:
            more = sums_of(tf.nest.map_structure(lambda value: value[part], stacked), part)
            return part + 1, tf.nest.map_structure(tf.add, sums, more)

        start = {o.name: given.nothing(o) for o in self._objectives}
        _, sums = tf.while_loop(
            lambda part, _: part < self._microbatches, add, (tf.constant(0), start)
        )
        return given.unpacked(sums)

    def _update(self, gradients: Mapping[str, list[tf.Tensor]]) -> None:
        for objective in self._objectives:
            optimizer = self._optimizers[objective.name]
            optimizer.apply(list(gradients[objective.name]), list(objective.variables))
        if self._ema is not None:
            self._ema.follow(next(iter(self._optimizers.values())).iterations)


def _squares(gradients: Sequence[tf.Tensor], compiled: bool) -> list[tf.Tensor]:
    """Returns the sum of squares of each gradient, scalar float32."""
    if not compiled:
        return [2 * tf.nn.l2_loss(g) for g in gradients]
    # XLA adds one number after another, on CPUs, unless there are columns to add side by side.
    columns = [
        tf.reshape(tf.square(g), [-1, g.shape[-1] if g.shape.rank else 1]) for g in gradients
    ]
    return [tf.reduce_sum(tf.reduce_sum(c, axis=0)) for c in columns]
