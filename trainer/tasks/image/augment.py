"""Random changes of training images, on the host, each row by a seed of its own."""

from __future__ import annotations

import tensorflow as tf

from trainer.tasks.image.options import ImageOptions
from trainer.tasks.image.pixels import WHITE


def augmented(pixels: tf.Tensor, seed: tf.Tensor, options: ImageOptions) -> tf.Tensor:
    """Returns the images shifted, mirrored, and with other light, as the options have it.

    Args:
      pixels: uint8 or float32 [rows, height, width, channels], 0 to 255.
      seed: int32 [rows, 2].
      options: how much of each.

    Returns:
      as `pixels`.
    """
    if not (options.crop or options.flip or options.brightness or options.contrast):
        return pixels
    spec = tf.TensorSpec(pixels.shape[1:], pixels.dtype)
    return tf.map_fn(
        lambda row: _one(row[0], row[1], options), (pixels, seed), fn_output_signature=spec
    )


def _one(pixels: tf.Tensor, seed: tf.Tensor, options: ImageOptions) -> tf.Tensor:
    shape, dtype = pixels.shape, pixels.dtype
    shift, mirror, light, stretch = (tf.random.fold_in(seed, number) for number in range(4))
    if margin := options.crop:
        pixels = tf.pad(pixels, [[margin, margin], [margin, margin], [0, 0]])
        pixels = tf.image.stateless_random_crop(pixels, shape, shift)
    if options.flip:
        pixels = tf.image.stateless_random_flip_left_right(pixels, mirror)
    if not (options.brightness or options.contrast):
        return pixels
    bright = tf.cast(pixels, tf.float32)
    if amount := options.brightness * WHITE:
        bright += tf.random.stateless_uniform([], light, -amount, amount)
    if options.contrast:
        factor = 1 + tf.random.stateless_uniform([], stretch, -options.contrast, options.contrast)
        mean = tf.reduce_mean(bright, axis=(0, 1))
        bright = mean + factor * (bright - mean)
    return tf.saturate_cast(tf.clip_by_value(bright, 0.0, WHITE), dtype)
