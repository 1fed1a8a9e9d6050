"""Tasks of users: some that ask for much, some that have it hard."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence

import keras
import tensorflow as tf

from trainer.data.dataset import Dataset
from trainer.data.manifest import Feature, Manifest
from trainer.task import Batch, Objective, Sums, Task, Tensors, raw
from trainer.tasks.tabular.options import TabularOptions
from trainer.tasks.tabular.task import Tabular

SCALE = tf.constant(2.0) * 3.0


class ProbeOptions(TabularOptions):
    """One more key."""

    l2: float = 0.0


class Probe(Tabular):
    """The tabular task with a penalty on its kernels."""

    Options = ProbeOptions
    options: ProbeOptions

    def penalty(self) -> tf.Tensor:
        kernels = [v.value for v in self.trained_variables() if v.name == "kernel"]
        return self.options.l2 * tf.add_n([tf.nn.l2_loss(kernel) for kernel in kernels])


class OneFails(Tabular):
    """A worker that has a fault of its own where the chief has none."""

    def build(self, data: Dataset) -> None:
        super().build(data)
        if json.loads(os.environ["TF_CONFIG"])["task"]["type"] == "worker":
            raise ValueError("only this worker")


class Unhurried(Probe):
    """Takes the step over: the gradient in two halves of its rows."""

    def train_step(self, batch: Batch, scale: tf.Tensor) -> Mapping[str, Sums]:
        variables = self.trained_variables()
        rows = batch.weight.shape[0]
        halves = []
        for part in (slice(rows // 2), slice(rows // 2, rows)):
            features = {name: value[part] for name, value in batch.features.items()}
            weight = batch.weight[part]
            with tf.GradientTape() as tape:
                per_row = self.loss(Batch(features, batch.label[part], weight), True)
                loss = tf.reduce_sum(per_row * weight)
                scaled = loss * scale
            found = [tf.convert_to_tensor(g) for g in tape.gradient(scaled, raw(variables))]
            halves.append(Sums(found, loss, tf.reduce_sum(weight)))
        first, second = halves
        gradients = [a + b for a, b in zip(first.gradients, second.gradients, strict=True)]
        sums = Sums(gradients, first.loss + second.loss, first.weight + second.weight)
        return {"loss": sums}


class TwoHeads(Probe):
    """Two objectives: the first layers by one optimizer, the last one by another."""

    def objectives(self) -> Sequence[Objective]:
        *body, kernel, bias = self.trained_variables()
        return (
            Objective("body", self.loss, body),
            Objective("head", self._twice, [kernel, bias], lambda: keras.optimizers.SGD(0.01)),
        )

    def _twice(self, batch: Batch, training: bool) -> tf.Tensor:
        return 2.0 * self.loss(batch, training)


class Player(Task):
    """Makes its own rows: points around a line, and fits it."""

    def build(self, data: Dataset) -> None:
        self.model = keras.Sequential([keras.Input([1]), keras.layers.Dense(1)])

    def batches(self, step: tf.Tensor, rows: tf.Tensor) -> Batch:
        seed = tf.stack([tf.fill(rows.shape, step), rows], axis=1)
        x = tf.map_fn(
            lambda one: tf.random.stateless_uniform([1], one, -1.0, 1.0),
            seed,
            fn_output_signature=tf.float32,
        )
        return Batch({"x": x}, 3.0 * x[:, 0] + 1.0, tf.ones(rows.shape))

    def loss(self, batch: Batch, training: bool) -> tf.Tensor:
        return tf.square(self.model(batch.features["x"])[:, 0] - batch.label)

    def serve(self, features: Tensors) -> Tensors:
        return {"prediction": self.model(features["x"])[:, 0]}


class _WithNorm(Probe):
    synchronized = False

    def _model(self, outputs: int) -> keras.Model:
        model = super()._model(outputs)
        norm = keras.layers.BatchNormalization(name="norm", synchronized=self.synchronized)
        hidden = norm(model.layers[-2].output)
        return keras.Model(model.input, keras.layers.Dense(outputs, dtype="float32")(hidden))


class Drifting(_WithNorm):
    """Its normalisation sees one replica's rows."""


class Synchronized(_WithNorm):
    """Its normalisation sees all rows."""

    synchronized = True


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
