"""From a column to pixels: uint8 or float32 [rows, height, width, channels], from 0 to 255.

Encoded images (PNG, JPEG, GIF, BMP) are decoded; lists of pixel values are scaled from the range
that the training split has. Both are resized where they must be. All of it is TensorFlow, row by
row, so that an exported model takes what the data set holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import tensorflow as tf

from trainer.data.dataset import Dataset
from trainer.data.manifest import Feature
from trainer.errors import UsageError
from trainer.tasks.image.options import ImageOptions

WHITE = 255.0
DEFAULT_SIZE = 64
DEFAULT_CHANNELS = 3
# What PNG, JPEG, GIF and BMP begin with.
_BEGINNINGS = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"BM")
_SHOWN_BYTES = 16

Shape = tuple[int, int, int]


@dataclass(frozen=True)
class Encoded:
    """A string column of image files. Pixels stay uint8: a quarter of the memory on their way."""

    feature: Feature
    shape: Shape
    dtype = tf.uint8

    @classmethod
    def of(cls, feature: Feature, options: ImageOptions) -> Encoded:
        """Takes size and channels from the options."""
        side = options.size or DEFAULT_SIZE
        return cls(feature, (side, side, options.channels or DEFAULT_CHANNELS))

    def __call__(self, files: tf.Tensor) -> tf.Tensor:
        """Maps string [rows] to uint8 [rows, height, width, channels]."""
        places = tf.range(tf.shape(files)[0])
        spec = tf.TensorSpec(self.shape, tf.uint8)
        return tf.map_fn(self._decode, (files, places), fn_output_signature=spec)

    def _decode(self, file_and_place: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        file, place = file_and_place
        known = [tf.strings.substr(file, 0, len(b)) == b for b in _BEGINNINGS]
        told = f"column {self.feature.name}: not a PNG, JPEG, GIF or BMP image, row of the batch:"
        begins = tf.strings.substr(file, 0, _SHOWN_BYTES)
        what = [told, place, "bytes:", tf.strings.length(file), "beginning:", begins]
        # Or the decoder complains first, and names nothing.
        with tf.control_dependencies([tf.debugging.Assert(tf.reduce_any(tf.stack(known)), what)]):
            file = tf.identity(file)
        pixels = tf.io.decode_image(file, channels=self.shape[2], expand_animations=False)
        return tf.cast(tf.round(resized(pixels, self.shape)), tf.uint8)


@dataclass(frozen=True)
class Listed:
    """A column of fixed-size lists of pixel values, row by row from the top, channels last.

    stored: height, width, channels of a list. low, high: black and white.
    """

    feature: Feature
    stored: Shape
    shape: Shape
    low: float
    high: float
    dtype = tf.float32

    @classmethod
    def of(cls, feature: Feature, options: ImageOptions, data: Dataset) -> Listed:
        """Takes the range of values from the training split; UsageError if no size fits."""
        stored = geometry(feature, options)
        shape = (options.size, options.size, stored[2]) if options.size else stored
        figures = data.split_statistics("train").features[feature.name]
        low, high = figures.min or 0.0, figures.max or 0.0
        return cls(feature, stored, shape, low, high if high > low else low + 1)

    def __call__(self, values: tf.Tensor) -> tf.Tensor:
        """Maps numbers [rows, values] to float32 [rows, height, width, channels]."""
        levels = (tf.cast(values, tf.float32) - self.low) * (WHITE / (self.high - self.low))
        pixels = tf.reshape(tf.clip_by_value(levels, 0.0, WHITE), [-1, *self.stored])
        return pixels if self.shape == self.stored else resized(pixels, self.shape)


def resized(pixels: tf.Tensor, shape: Shape) -> tf.Tensor:
    """Returns float32 […, height, width, channels], averaged where it shrinks."""
    return tf.image.resize(pixels, shape[:2], antialias=True)


def geometry(feature: Feature, options: ImageOptions) -> Shape:
    """Returns height, width and channels of a pixel list.

    As the options say, else those that the data has, else square.

    Raises:
      UsageError: they do not multiply to the list's length.
    """
    stored = tuple(n or 0 for n in feature.shape)
    if not (options.height or options.channels):
        if len(stored) == 2:
            return (*stored, 1)
        if len(stored) == 3 and stored[2] in (1, 3):
            return stored
    count = math.prod(stored)
    for channels in [options.channels] if options.channels else [1, 3]:
        side = math.isqrt(count // channels)
        height, width = options.height or side, options.width or side
        if height * width * channels == count:
            return height, width, channels
    raise UsageError(
        f"column {feature.name} has {count} values a row: --height, --width and --channels must "
        f"multiply to {count}"
    )
