"""Tasks of users who have it hard: an op at import, a loss that is never a number."""

from __future__ import annotations

import tensorflow as tf

from trainer.data.manifest import Feature, Manifest
from trainer.task import Batch
from trainer.tasks.tabular.task import Tabular

SCALE = tf.constant(2.0) * 3.0


class Eager(Tabular):
    """The tabular task, from a module that did not wait for a strategy."""


class Hopeless(Tabular):
    """Its loss is NaN."""

    def loss(self, batch: Batch, training: bool) -> tf.Tensor:
        return super().loss(batch, training) * float("nan")


class Choosy(Tabular):
    """Wants a column by a name that the data does not have."""

    def inputs(self, manifest: Manifest) -> tuple[Feature, ...]:
        return (manifest.feature("x2"),)
