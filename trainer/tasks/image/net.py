"""A small residual net: pre-activation blocks, each stage but the first at half the size."""

from __future__ import annotations

from typing import Any

import keras

from trainer.tasks.image.norm import GroupNorm
from trainer.tasks.image.options import ImageOptions

# The usual number of groups is 32, in nets ten times as wide.
_MOST_GROUPS = 8


def residual_net(shape: tuple[int, int, int], outputs: int, options: ImageOptions) -> keras.Model:
    """Returns a model from float32 [rows, height, width, channels] to float32 [rows, outputs]."""
    pixels = keras.Input(shape, name="pixels")
    x = _conv(options.widths[0], 3, options.stride)(pixels)
    for stage, width in enumerate(options.widths):
        for block in range(options.blocks):
            stride = 2 if stage and not block else 1
            x = _residual(x, width, stride, options)
    x = keras.layers.ReLU()(_norm(x.shape[-1], options)(x))
    x = keras.layers.Flatten()(_cells(x, options.grid))
    if options.dropout:
        x = keras.layers.Dropout(options.dropout)(x)
    return keras.Model(pixels, keras.layers.Dense(outputs, dtype="float32")(x), name="image")


def _residual(x: Any, width: int, stride: int, options: ImageOptions) -> Any:
    """Adds two convolutions to what passes by; where the shape changes, that is projected."""
    before = x.shape[-1]
    active = keras.layers.ReLU()(_norm(before, options)(x))
    passing = _conv(width, 1, stride)(active) if (before, stride) != (width, 1) else x
    x = _conv(width, 3, stride)(active)
    x = keras.layers.ReLU()(_norm(width, options)(x))
    return keras.layers.Add()([passing, _conv(width, 3)(x)])


def _cells(x: Any, most: int) -> Any:
    """Averages [rows, height, width, channels] over at most `most` cells a side."""
    size = tuple(-(-side // most) for side in x.shape[1:3])
    return keras.layers.AveragePooling2D(size, padding="same")(x)


def _conv(width: int, kernel: int, stride: int = 1) -> keras.layers.Layer:
    return keras.layers.Conv2D(
        width, kernel, stride, padding="same", use_bias=False, kernel_initializer="he_normal"
    )


def _norm(width: int, options: ImageOptions) -> keras.layers.Layer:
    if options.norm == "batch":
        return keras.layers.BatchNormalization(synchronized=True)
    groups = next(n for n in range(_MOST_GROUPS, 0, -1) if width % n == 0)
    return GroupNorm(groups)
