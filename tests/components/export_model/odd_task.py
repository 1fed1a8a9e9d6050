"""A Task as users write them: a lookup table inside a plain object, several outputs."""

from __future__ import annotations

import keras
import tensorflow as tf

from trainer.data.dataset import Dataset
from trainer.task import Batch, Task, Tensors


class _Words:
    """A plain object, which TensorFlow does not look into."""

    def __init__(self) -> None:
        keys = tf.constant(["blue", "green", "red"])
        values = tf.constant([1.0, 2.0, 3.0])
        self.tables = {
            "color": tf.lookup.StaticHashTable(
                tf.lookup.KeyValueTensorInitializer(keys, values), default_value=0.0
            )
        }


class Odd(Task):
    """Takes words, not codes; two tables, one of them a Keras layer's."""

    def preprocess(self, features: Tensors) -> Tensors:
        word = self.words.tables["color"].lookup(features["self"])
        number = tf.where(tf.math.is_nan(features["Dep Delay"]), 0.0, features["Dep Delay"])
        index = tf.cast(self.lookup(features["self"]), tf.float32)
        return {"x": tf.stack([word, number, features["dep_delay"], index], axis=1)}

    def build(self, data: Dataset) -> None:
        self.words = _Words()
        self.lookup = keras.layers.StringLookup(vocabulary=["blue", "green", "red"])
        self.model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])

    def loss(self, batch: Batch, training: bool) -> tf.Tensor:
        logits = self.model(batch.features["x"], training=training)[:, 0]
        return tf.nn.sigmoid_cross_entropy_with_logits(batch.label, logits)

    def serve(self, features: Tensors) -> Tensors:
        logits = self.model(features["x"])[:, 0]
        return {"probability": tf.sigmoid(logits), "logit": logits, "pair": features["x"][:, :2]}


class Wrong(Odd):
    """Serves something else for words than for the codes that it is trained and evaluated with."""

    takes_codes = True

    def preprocess(self, features: Tensors) -> Tensors:
        color = features["self"]
        code = tf.cast(color, tf.float32) if color.dtype != tf.string else tf.zeros(tf.shape(color))
        return super().preprocess({**features, "self": tf.fill(tf.shape(color), "red")}) | {
            "code": code
        }

    def serve(self, features: Tensors) -> Tensors:
        return {"probability": tf.sigmoid(self.model(features["x"])[:, 0] + features["code"])}
