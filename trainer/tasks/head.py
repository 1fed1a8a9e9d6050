"""What follows from the kind of label alone: how many outputs, which loss, answer and metrics."""

from __future__ import annotations

from dataclasses import dataclass

import keras
import tensorflow as tf

from trainer.data.dataset import Dataset
from trainer.data.manifest import LabelKind
from trainer.task import Tensors


@dataclass(frozen=True)
class Head:
    """The label's side of a built-in task: its model ends in `outputs` numbers a row.

    outputs: one a class, or one. mean, std: of a regression's label in the training split.
    """

    kind: LabelKind
    outputs: int
    mean: float = 0.0
    std: float = 1.0

    @classmethod
    def of(cls, data: Dataset) -> Head:
        """Reads the kind, the classes and the moments of the label."""
        label = data.manifest.label
        if label.kind != "regression":
            return cls(label.kind, len(label.classes or ()) if label.kind == "multiclass" else 1)
        figures = data.split_statistics("train").features[label.name]
        return cls(label.kind, 1, figures.mean or 0.0, figures.std or 1.0)

    def loss(self, label: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
        """Cross-entropy; for regression half the squared error in standard deviations.

        Args:
          label: [rows], as `Batch.label`.
          logits: float32 [rows, outputs].

        Returns:
          float32 [rows].
        """
        if self.kind == "multiclass":
            return tf.nn.sparse_softmax_cross_entropy_with_logits(label, logits)
        if self.kind == "binary":
            return tf.nn.sigmoid_cross_entropy_with_logits(label, logits[:, 0])
        return 0.5 * tf.square(logits[:, 0] - (label - self.mean) / self.std)

    def answer(self, logits: tf.Tensor) -> Tensors:
        """Returns `probability`, `probabilities` or `prediction`, from float32 [rows, outputs]."""
        if self.kind == "multiclass":
            return {"probabilities": tf.nn.softmax(logits)}
        if self.kind == "binary":
            return {"probability": tf.sigmoid(logits[:, 0])}
        return {"prediction": logits[:, 0] * self.std + self.mean}

    def metrics(self) -> dict[str, keras.metrics.Metric]:
        """Returns auc and accuracy (binary), accuracy (multiclass), mae and rmse (regression)."""
        if self.kind == "multiclass":
            return {"accuracy": keras.metrics.SparseCategoricalAccuracy()}
        if self.kind == "binary":
            return {"auc": keras.metrics.AUC(), "accuracy": keras.metrics.BinaryAccuracy()}
        return {
            # keras.metrics.MeanAbsoluteError averages the last axis, which here is the rows.
            "mae": keras.metrics.MeanMetricWrapper(_absolute_error, name="mae"),
            "rmse": keras.metrics.RootMeanSquaredError(),
        }


def _absolute_error(label: tf.Tensor, prediction: tf.Tensor) -> tf.Tensor:
    return tf.abs(label - prediction)
