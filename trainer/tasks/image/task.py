"""The image task: one column of images into a small residual net, for any kind of label."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import keras
import tensorflow as tf
from pydantic import BaseModel

from trainer.data.dataset import Dataset
from trainer.data.manifest import Feature, Manifest
from trainer.task import Batch, Task, Tensors
from trainer.tasks.choice import choose
from trainer.tasks.head import Head
from trainer.tasks.image.augment import augmented
from trainer.tasks.image.net import residual_net
from trainer.tasks.image.options import ImageOptions
from trainer.tasks.image.pixels import WHITE, Encoded, Listed


class Image(Task):
    """Predicts the label from encoded images, or from lists of pixel values."""

    Options: ClassVar[type[BaseModel]] = ImageOptions
    options: ImageOptions

    def inputs(self, manifest: Manifest) -> tuple[Feature, ...]:
        """The column that `image` names, or the only one that holds, or can hold, images."""
        candidates = [f for f in manifest.inputs if _is_encoded(f) or _is_listed(f)]
        files = [f for f in candidates if f.logical == "bytes"]
        if files and self.options.image is None:  # beside them is text, such as their paths
            candidates = files
        column = choose(
            manifest,
            key="image",
            named=self.options.image,
            candidates=candidates,
            wanted="encoded images or a fixed-size list of numbers",
        )
        return (column,)

    def build(self, data: Dataset) -> None:
        """Settles size and channels, then makes the model."""
        self.find_pixels(data)
        self.head = Head.of(data)
        self.model = residual_net(self.pixels.shape, self.head.outputs, self.options)

    def find_pixels(self, data: Dataset) -> None:
        """Settles how the column becomes pixels."""
        (feature,) = self.inputs(data.manifest)
        self.pixels: Encoded | Listed
        if _is_encoded(feature):
            self.pixels = Encoded.of(feature, self.options)
        else:
            self.pixels = Listed.of(feature, self.options, data)

    def preprocess(self, features: Tensors) -> Tensors:
        """Returns `pixels` [rows, height, width, channels], 0 to 255."""
        return {"pixels": self.pixels(features[self.pixels.feature.name])}

    def augment(self, features: Tensors, seed: tf.Tensor) -> Tensors:
        """Shifts, mirrors and lights `pixels` anew for each training row."""
        return {"pixels": augmented(features["pixels"], seed, self.options)}

    def loss(self, batch: Batch, training: bool) -> tf.Tensor:
        """Cross-entropy; for regression half the squared error in standard deviations."""
        logits = self.model(self.scaled(batch.features), training=training)
        return self.head.loss(batch.label, logits)

    def serve(self, features: Tensors) -> Tensors:
        """Returns `probability`, `probabilities` or `prediction`, as the label wants."""
        return self.head.answer(self.model(self.scaled(features), training=False))

    def metrics(self) -> Mapping[str, keras.metrics.Metric]:
        """Those of the label's kind."""
        return self.head.metrics()

    def scaled(self, features: Tensors) -> tf.Tensor:
        """Returns `pixels` as the model takes them, float32.

        Scaled on the device, so that what travels there may stay uint8.
        """
        if self.options.scaling == "standardized":
            return tf.image.per_image_standardization(features["pixels"])
        return tf.cast(features["pixels"], tf.float32) * (2 / WHITE) - 1.0


def _is_encoded(feature: Feature) -> bool:
    # Words of a dictionary are text, and few: categories, not images.
    return feature.dtype == "string" and not feature.shape and feature.dictionary is None


def _is_listed(feature: Feature) -> bool:
    return feature.dtype != "string" and feature.shape != () and None not in feature.shape
