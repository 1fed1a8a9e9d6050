"""Tasks with one op each that a TPU does not take, for tests of the check."""

from __future__ import annotations

import tensorflow as tf

from trainer.data.dataset import Dataset
from trainer.task import Batch, Tensors
from trainer.tasks.tabular.task import Tabular


def masked(x: tf.Tensor) -> tf.Tensor:
    return x + tf.reduce_sum(tf.boolean_mask(x, x > 0.5))  # mask in a branch


def body(i: tf.Tensor, x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    return i + 1, tf.strings.to_number(tf.strings.as_string(x))  # string in a loop


class Everything(Tabular):
    """Its loss has one of each; the comment names it."""

    def build(self, data: Dataset) -> None:
        super().build(data)
        pairs = tf.lookup.KeyValueTensorInitializer([1, 2], [1.0, 2.0])
        self.table = tf.lookup.StaticHashTable(pairs, 0.0)

    def loss(self, batch: Batch, training: bool) -> tf.Tensor:
        x = super().loss(batch, training)
        x += tf.strings.to_number(tf.strings.as_string(x))  # string
        _, x = tf.while_loop(lambda i, x: i < 3, body, (0, x))
        x += tf.ensure_shape(tf.py_function(lambda v: v, [x], tf.float32), x.shape)  # python
        x += self.table.lookup(tf.cast(x, tf.int32))  # table
        x = tf.cond(x[0] > 0, lambda: masked(x), lambda: x)
        x += tf.reduce_sum(tf.cast(tf.where(x > 0.5), tf.float32))  # where
        x += tf.reduce_sum(tf.unique(tf.stop_gradient(x))[0])  # unique
        x += tf.sparse.to_dense(tf.SparseTensor([[0]], x[:1], x.shape))  # sparse
        x = tf.cast(tf.cast(x, tf.float64) * 2, tf.float32)  # float64
        x += tf.cast(tf.strings.length(tf.io.read_file(__file__)), tf.float32)  # file
        return x * tf.random.uniform(x.shape)  # random


class Unheard(Tabular):
    """Its loss has an op that XLA does not know."""

    def loss(self, batch: Batch, training: bool) -> tf.Tensor:
        x = tf.debugging.check_numerics(super().loss(batch, training), "not a number")
        return x * tf.random.stateless_gamma(x.shape, [1, 2], 1.0)


class Worded(Tabular):
    """Leaves a word for the step."""

    def preprocess(self, features: Tensors) -> Tensors:
        return {**super().preprocess(features), "word": tf.strings.as_string(features["x0"])}


class Ragged(Tabular):
    """Leaves lists of any length for the step."""

    def preprocess(self, features: Tensors) -> Tensors:
        words = tf.strings.split(tf.strings.as_string(features["x0"]), ".")
        return {**super().preprocess(features), "parts": tf.strings.length(words)}


class Loose(Tabular):
    """Leaves tensors as long as the longest list of the batch."""

    def preprocess(self, features: Tensors) -> Tensors:
        words = tf.strings.split(tf.strings.as_string(features["x0"]), ".")
        return {**super().preprocess(features), "parts": tf.strings.length(words.to_tensor())}


class Cut(Tabular):
    """Leaves lists of a fixed size; how many there are, TensorFlow has lost on the way."""

    def preprocess(self, features: Tensors) -> Tensors:
        words = tf.strings.split(tf.strings.as_string(features["x0"]), ".")
        parts = tf.strings.length(words.to_tensor(shape=[None, 2]))
        return {**super().preprocess(features), "parts": parts}


class Averaged(Tabular):
    """Returns a mean."""

    def loss(self, batch: Batch, training: bool) -> tf.Tensor:
        return tf.reduce_mean(super().loss(batch, training))
