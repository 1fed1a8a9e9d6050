"""A generative adversarial net: one net draws images, another tells them from real ones.

    castell train --data digits --output run --task trainer.examples.gan:Gan --steps 5000

What it shows: two objectives in one step, each with its variables and an optimizer of its own; and
randomness that belongs to a row (`augment`), so that one replica and eight draw the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import keras
import tensorflow as tf
from pydantic import Field

from trainer.data.dataset import Dataset
from trainer.task import Batch, Objective, Tensors
from trainer.tasks.image.options import ImageOptions
from trainer.tasks.image.task import Image
from trainer.tasks.lists import WIDEST, Counts

# Both nets move while each learns from the other: little momentum keeps them from circling.
_BETA_1 = 0.5


class GanOptions(ImageOptions):
    """Settings of the images that are read, and of both nets."""

    noise: int = Field(
        16, gt=0, le=WIDEST, description="random numbers that an image is drawn from"
    )
    hidden: Counts = Field((128, 128), description="widths of the hidden layers of both nets")
    rate: float = Field(5e-4, gt=0, description="learning rate of both")


class Gan(Image):
    """Draws images like those of the data; reads them as the image task does."""

    Options = GanOptions
    options: GanOptions

    def build(self, data: Dataset) -> None:
        """Makes both nets: attributes that are Keras models are trained, saved and exported."""
        self.find_pixels(data)
        shape, hidden = self.pixels.shape, self.options.hidden
        size = shape[0] * shape[1] * shape[2]
        self.generator = keras.Sequential(
            [
                keras.Input((self.options.noise,)),
                *(keras.layers.Dense(width, "relu") for width in hidden),
                keras.layers.Dense(size, "tanh", dtype="float32"),
                keras.layers.Reshape(shape),
            ]
        )
        self.discriminator = keras.Sequential(
            [
                keras.Input(shape),
                keras.layers.Flatten(),
                *(keras.layers.Dense(width, "leaky_relu") for width in hidden),
                keras.layers.Dense(1, dtype="float32"),
            ]
        )

    def preprocess(self, features: Tensors) -> Tensors:
        """Returns `pixels`, and `noise` that is 0: an evaluation is the same each time."""
        pixels = super().preprocess(features)["pixels"]
        return {"pixels": pixels, "noise": tf.zeros([tf.shape(pixels)[0], self.options.noise])}

    def augment(self, features: Tensors, seed: tf.Tensor) -> Tensors:
        """Draws `noise` for each row from the row's own seed."""
        spec = tf.TensorSpec([self.options.noise], tf.float32)
        noise = tf.map_fn(
            lambda row: tf.random.stateless_normal(spec.shape, row), seed, fn_output_signature=spec
        )
        return {"pixels": features["pixels"], "noise": noise}

    def objectives(self) -> Sequence[Objective]:
        """Two losses; the loop takes both gradients at the same weights, then updates both."""

        def optimizer() -> keras.optimizers.Optimizer:
            return keras.optimizers.Adam(self.options.rate, beta_1=_BETA_1)

        return (
            Objective(
                "discriminator", self._tell_apart, self.discriminator.trainable_variables, optimizer
            ),
            Objective("generator", self._deceive, self.generator.trainable_variables, optimizer),
        )

    def _tell_apart(self, batch: Batch, training: bool) -> tf.Tensor:
        real = self.discriminator(self.scaled(batch.features), training=training)[:, 0]
        drawn = self.discriminator(self.draw(batch.features["noise"]), training=training)[:, 0]
        return tf.nn.softplus(-real) + tf.nn.softplus(drawn)

    def _deceive(self, batch: Batch, training: bool) -> tf.Tensor:
        drawn = self.generator(batch.features["noise"], training=training)
        return tf.nn.softplus(-self.discriminator(drawn, training=training)[:, 0])

    def draw(self, noise: tf.Tensor) -> tf.Tensor:
        """Maps [images, noise] to images from -1 to 1, [images, height, width, channels]."""
        return self.generator(noise, training=False)

    def serve(self, features: Tensors) -> Tensors:
        """Returns how probable it is that an image is a real one."""
        logits = self.discriminator(self.scaled(features), training=False)
        return {"probability": tf.sigmoid(logits[:, 0])}

    def metrics(self) -> dict[str, keras.metrics.Metric]:
        """None: the label of the data is not what is learned."""
        return {}
