"""What a user subclasses: a Task says what is learned, the loop knows how to run it.

A Task never meets `tf.distribute`: it is built inside the strategy's scope, its loss sees the rows
of one replica, and reduction, scaling, clipping, checkpoints and faults are the loop's business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import keras
import tensorflow as tf
from pydantic import BaseModel, ConfigDict

from trainer.data.dataset import Dataset
from trainer.data.input import Columns, Tensors
from trainer.data.manifest import Feature, Manifest

__all__ = ["Batch", "Objective", "Task", "Tensors"]


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
    """

    name: str
    loss: Callable[[Batch, bool], tf.Tensor]
    variables: Sequence[Any]


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
                logits = self.model(batch.features, training=training)
                return keras.losses.binary_crossentropy(batch.label, logits, from_logits=True)

            def serve(self, features):
                return {"probability": tf.sigmoid(self.model(features))}

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

    def preprocess(self, features: Tensors) -> Tensors:
        """Maps raw columns [rows, …] to model inputs [rows, …], row by row.

        Runs on the host inside tf.data, and stands in the exported signature. Null is NaN, the
        smallest int64, or the empty string (with `takes_codes`: code -1).
        """
        return features

    def loss(self, batch: Batch, training: bool) -> tf.Tensor:
        """Returns the loss of each row, float32 [rows]."""
        raise TypeError(f"{type(self).__name__} must define loss(batch, training)")

    def serve(self, features: Tensors) -> Tensors:
        """Maps preprocessed features to outputs [rows, …].

        Evaluation reads `probability` [rows] (binary: of the positive class), `probabilities`
        [rows, classes] (multiclass) or `prediction` [rows] (regression).
        """
        raise TypeError(f"{type(self).__name__} must define serve(features)")

    def objectives(self) -> Sequence[Objective]:
        """Returns the losses of a step; default: `loss` over all trainable variables."""
        return (Objective("loss", self.loss, self.trained_variables()),)

    def penalty(self) -> tf.Tensor:
        """Returns what regularisers add to the mean loss of a global batch, a scalar."""
        return tf.add_n([tf.constant(0.0), *(x for m in self.models().values() for x in m.losses)])

    def models(self) -> Mapping[str, Any]:
        """Returns the Keras models among the attributes, by attribute name."""
        return {k: v for k, v in vars(self).items() if isinstance(v, keras.Model)}

    def trained_variables(self) -> list[Any]:
        """Returns the trainable Keras variables of all models."""
        return [v for model in self.models().values() for v in model.trainable_variables]
