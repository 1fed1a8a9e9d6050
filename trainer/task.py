"""What a user subclasses: a Task says what is learned, the loop knows how to run it.

A Task never meets `tf.distribute`: it is built inside the strategy's scope, its loss sees the rows
of one replica, and reduction, scaling, clipping, checkpoints and faults are the loop's business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import keras
import tensorflow as tf
from pydantic import BaseModel, ConfigDict

from trainer.data.dataset import Dataset
from trainer.data.input import Columns, Tensors
from trainer.data.manifest import Feature, Manifest
from trainer.errors import UsageError

__all__ = ["Batch", "Objective", "Sums", "Task", "Tensors", "raw"]


@dataclass(frozen=True)
class Batch:
    """The rows of one replica.

    features: what `preprocess` returned, each [rows, …]. label: [rows]; binary float32 0/1,
    multiclass int32 class index, regression float32. weight: float32 [rows], 0 for padding.
    """

    features: Tensors
    label: tf.Tensor
    weight: tf.Tensor


@dataclass(frozen=True)
class Objective:
    """One loss and the variables (Keras variables) that it trains, by an optimizer of their own.

    loss(batch, training) returns float32 [rows], one value a row, not averaged, not weighted.
    optimizer: makes it (inside the strategy's scope); default: what the configuration describes.
    """

    name: str
    loss: Callable[[Batch, bool], tf.Tensor]
    variables: Sequence[Any]
    optimizer: Callable[[], keras.optimizers.Optimizer] | None = None

    def __post_init__(self) -> None:
        """Keeps what an iterator gives, which would be empty for the second who asks."""
        if isinstance(self.variables, Iterator):
            object.__setattr__(self, "variables", list(self.variables))


@dataclass(frozen=True)
class Sums:
    """What one replica adds to the global sums of an objective.

    gradients: of scale * loss, one for each of the objective's variables. loss: scalar float32, the
    weighted sum over the rows. weight: scalar float32, the sum of the weights.
    """

    gradients: Sequence[tf.Tensor]
    loss: tf.Tensor
    weight: tf.Tensor


class NoOptions(BaseModel):
    """A Task without settings of its own."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Task(tf.Module):
    """Base class; the least is `build`, `loss` and `serve`.

        class Churn(Task):
            def preprocess(self, features):
                return {**features, "usage": tf.math.log1p(features["usage"])}

            def build(self, data):
                self.model = my_model(data)

            def loss(self, batch, training):
                logits = self.model(batch.features, training=training)[:, 0]
                return tf.nn.sigmoid_cross_entropy_with_logits(batch.label, logits)

            def serve(self, features):
                return {"probability": tf.sigmoid(self.model(features))[:, 0]}

    `options` holds the validated `Options`, the Task's own configuration keys. A Task is a
    `tf.Module`, so that an export finds its models and lookup tables by itself.
    """

    Options: ClassVar[type[BaseModel]] = NoOptions
    # True: dictionary-coded string columns reach `preprocess` as int32 codes (null: -1) during
    # training, which spares a string lookup a row; a served request still brings strings.
    takes_codes: ClassVar[bool] = False

    def __init__(self, options: Any = None) -> None:
        super().__init__()
        self.options: Any = options if options is not None else self.Options()

    def inputs(self, manifest: Manifest) -> tuple[Feature, ...]:
        """Returns the columns that `preprocess` wants; default: all but variable-length lists."""
        return tuple(f for f in manifest.inputs if None not in f.shape)

    def columns(self, dataset: Dataset) -> Columns:
        """Returns how `inputs` are read from `dataset`."""
        return Columns(dataset, self.inputs(dataset.manifest), self.takes_codes)

    def build(self, data: Dataset) -> None:
        """Makes models and variables; called once, inside the strategy's scope."""
        raise TypeError(f"{type(self).__name__} must define build(data)")

    def learn(self, data: Dataset) -> None:
        """Fills weights from the rows of `data` (a vocabulary); after `build`, in the scope.

        Only when a run starts: loaded back, it may be without its rows. So what is learned must be
        a weight of a model, which every checkpoint holds.
        """

    def preprocess(self, features: Tensors) -> Tensors:
        """Maps raw columns [rows, …] to model inputs [rows, …], row by row.

        Runs on the host inside tf.data, and stands in the exported signature. Null is NaN, the
        smallest int64, or the empty string (with `takes_codes`: code -1).
        """
        return features

    def augment(self, features: Tensors, seed: tf.Tensor) -> Tensors:
        """Changes preprocessed training rows [rows, …] at random; never evaluated or served ones.

        Runs on the host. seed: int32 [rows, 2], a row's own, drawn from (seed, step, place in the
        global batch): use `tf.random.stateless_*`, and the number of replicas changes nothing.
        """
        return features

    @property
    def augments(self) -> bool:
        """Whether `augment` is defined."""
        return type(self).augment is not Task.augment

    def loss(self, batch: Batch, training: bool) -> tf.Tensor:
        """Returns the loss of each row, float32 [rows]."""
        raise TypeError(f"{type(self).__name__} must define loss(batch, training)")

    def serve(self, features: Tensors) -> Tensors:
        """Maps preprocessed features to outputs [rows, …].

        Evaluation reads `probability` [rows] (binary: of the positive class), `probabilities`
        [rows, classes] (multiclass) or `prediction` [rows] (regression).
        """
        raise TypeError(f"{type(self).__name__} must define serve(features)")

    def metrics(self) -> Mapping[str, keras.metrics.Metric]:
        """Returns Keras metrics of an evaluation during training, by name (inside the scope).

        Each is updated with (label, `predictions`, weight); the mean `loss` is always there.
        """
        return {}

    def predictions(self, batch: Batch) -> tf.Tensor:
        """Returns what `metrics` see, [rows, …]: `probability`, `probabilities` or `prediction`."""
        outputs = named_rows("serve", self.serve(batch.features), batch.weight.shape[0])
        for name in ("probability", "probabilities", "prediction"):
            if name in outputs:
                return outputs[name]
        raise UsageError(
            f"{type(self).__name__}.serve returns {', '.join(outputs)}, none of which metrics() "
            "can be compared with: define predictions(batch)"
        )

    def objectives(self) -> Sequence[Objective]:
        """Returns the losses of a step; default: `loss` over all trainable variables."""
        return (Objective("loss", self.loss, self.trained_variables()),)

    def train_step(self, batch: Batch, scale: tf.Tensor) -> Mapping[str, Sums]:
        """Returns, by objective, what this replica's rows add to the step.

        Override it for a step that `objectives` cannot express; the loop still reduces, divides by
        the global weight, unscales, tests for finiteness, clips and updates.

        Args:
          batch: this replica's rows (of one micro-batch).
          scale: scalar float32, what gradients are a multiple of (float16; else 1).
        """
        return {o.name: self.sums(o, batch, scale) for o in self.objectives()}

    def sums(self, objective: Objective, batch: Batch, scale: tf.Tensor) -> Sums:
        """Returns the forward and backward pass of one objective."""
        weight = tf.reduce_sum(batch.weight)
        with tf.GradientTape() as tape:
            per_row = one_a_row(objective.name, objective.loss(batch, True), batch.weight)
            # The penalty counts once a global batch: over all replicas and micro-batches the
            # weights add up to what the sum is divided by.
            loss = tf.reduce_sum(per_row * batch.weight) + penalty_of(self) * weight
            scaled = loss * scale
        variables = raw(objective.variables)
        gradients = tape.gradient(scaled, variables)
        if all(g is None for g in gradients):
            raise UsageError(
                f"objective {objective.name!r} trains nothing: its loss depends on none of its "
                f"{len(variables)} variables"
            )
        # A part may be out of use in this loss, as a discriminator is in the generator's.
        found = [
            tf.zeros_like(v) if g is None else tf.convert_to_tensor(g)
            for v, g in zip(variables, gradients, strict=True)
        ]
        return Sums(found, loss, weight)

    def batches(self, step: tf.Tensor, rows: tf.Tensor) -> Batch:
        """Returns the rows of a step, made by the task itself; then no `--data` is read.

        Runs inside the step, on the replica, with the weights of the moment.

        Args:
          step: scalar int32, from 0.
          rows: int32 [rows], the places in the global batch that are this replica's. Draw each
            row's randomness from (step, place), and the number of replicas changes nothing. (Under
            XLA, TensorFlow draws other numbers from the same seed.)
        """
        raise TypeError(f"{type(self).__name__} must define batches(step, rows)")

    @property
    def feeds_itself(self) -> bool:
        """Whether `batches` is defined, so that no data set is read."""
        return type(self).batches is not Task.batches

    def penalty(self) -> tf.Tensor:
        """Returns what regularisers add to the mean loss of a global batch, a scalar."""
        return tf.add_n([tf.constant(0.0), *(x for m in self.models().values() for x in m.losses)])

    def models(self) -> Mapping[str, Any]:
        """Returns the Keras models among the attributes, by attribute name."""
        return {k: v for k, v in vars(self).items() if isinstance(v, keras.Model)}

    def trained_variables(self) -> list[Any]:
        """Returns the trainable Keras variables of all models, those that models share once."""
        found = [v for model in self.models().values() for v in model.trainable_variables]
        return list({id(v): v for v in found}.values())


def one_a_row(name: str, loss: Any, weight: tf.Tensor) -> tf.Tensor:
    """Returns an objective's loss as float32 [rows].

    Raises:
      UsageError: it has another shape ([rows, 1] or a mean would be broadcast against the weights,
        and train something else), or is no floating-point number.
    """
    if loss is None:
        raise UsageError(f"objective {name!r}: the loss returned None: return one value a row")
    loss = tf.convert_to_tensor(loss)
    if not loss.shape.is_compatible_with(weight.shape):
        raise UsageError(
            f"objective {name!r}: the loss has shape {loss.shape}, not {weight.shape}: return one "
            "value a row, not averaged (a loss of [rows, 1] needs [:, 0]; a keras Loss needs "
            "reduction=None)"
        )
    if not loss.dtype.is_floating:
        raise UsageError(f"objective {name!r}: the loss is {loss.dtype.name}, not float32")
    return tf.ensure_shape(tf.cast(loss, tf.float32), weight.shape)


def penalty_of(task: Task) -> tf.Tensor:
    """Returns a Task's penalty as a float32 scalar.

    Raises:
      UsageError: it is something else, which would be broadcast over the rows.
    """
    penalty = task.penalty()
    if penalty is None or tf.convert_to_tensor(penalty).shape.rank != 0:
        what = "None" if penalty is None else f"shape {tf.convert_to_tensor(penalty).shape}"
        raise UsageError(f"penalty() returned {what}: return one number, a scalar")
    return tf.cast(penalty, tf.float32)


def named_rows(method: str, returned: Any, rows: int | None) -> dict[str, Any]:
    """Returns what `preprocess`, `augment` or `serve` gave, if it is tensors by name, a row each.

    Raises:
      UsageError: it is something else; it says what `method` must return.
    """
    if not isinstance(returned, Mapping):
        kind = "None" if returned is None else f"a {type(returned).__name__}"
        raise UsageError(
            f"{method}() returned {kind}: return a dictionary of tensors, [rows, …] each"
        )
    for name, value in returned.items():
        if not isinstance(name, str):
            raise UsageError(f"{method}() returned the key {name!r}: keys must be text")
        shape = getattr(value, "shape", tf.TensorShape(None))
        known = tf.TensorShape(shape)
        if known.rank == 0 or (known.rank and not known[:1].is_compatible_with([rows])):
            raise UsageError(
                f"{method}(): {name!r} has shape {known} for {rows} rows: it must keep one entry a "
                "row, in their order"
            )
    return dict(returned)


def raw(variables: Sequence[Any]) -> list[Any]:
    """Returns the tf.Variable behind each Keras variable (itself, if it is one already)."""
    return [v.value if isinstance(v, keras.Variable) else v for v in variables]
