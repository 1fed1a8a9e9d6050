"""Tasks that several replicas would train to something else than one."""

from __future__ import annotations

import keras
import tensorflow as tf

from trainer.data.dataset import Dataset
from trainer.task import Batch
from trainer.tasks.tabular.task import Tabular


class Centred(Tabular):
    """Its loss subtracts the mean over the rows of the replica."""

    def loss(self, batch: Batch, training: bool) -> tf.Tensor:
        losses = super().loss(batch, training)
        return (losses - tf.reduce_mean(losses)) ** 2


class Normalized(Tabular):
    """Its model normalises with the rows of the replica."""

    def build(self, data: Dataset) -> None:
        super().build(data)
        inner = self.model
        outputs = keras.layers.BatchNormalization(dtype="float32")(inner.output)
        self.model = keras.Model(inner.input, outputs)
