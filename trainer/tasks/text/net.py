"""A small encoder of embedded words: their mean and maximum, convolutions, or a recurrent net."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from trainer.tasks.text import tokens
from trainer.tasks.text.options import TextOptions
from trainer.tasks.text.vocabulary import Vocabulary

_CONV_WORDS = 3


def word_net(vocabulary: Vocabulary, outputs: int, options: TextOptions) -> keras.Model:
    """Returns a model from int64 [rows, length] fingerprints to float32 [rows, outputs]."""
    words = keras.Input((options.length,), dtype="int64", name="words")
    index = vocabulary(words)
    embedded = keras.layers.Embedding(vocabulary.size, options.embedding_size)(index)
    there = ops.not_equal(index, tokens.NONE)
    return keras.Model(words, _head(embedded, there, outputs, options), name="text")


def piece_net(buckets: int, outputs: int, options: TextOptions) -> keras.Model:
    """Returns a model from int32 [rows, length, pieces] to float32 [rows, outputs].

    A word is the mean of its pieces.
    """
    shape = (options.length, tokens.MOST_PIECES)
    pieces = keras.Input(shape, dtype="int32", name="pieces")
    there = ops.not_equal(pieces, tokens.NONE)
    embedded = keras.layers.Embedding(1 + buckets, options.embedding_size)(pieces)
    words = _mean(embedded, there)
    return keras.Model(pieces, _head(words, there[:, :, 0], outputs, options), name="text")


def _head(words: Any, there: Any, outputs: int, options: TextOptions) -> Any:
    """Maps words [rows, length, width], and which of them are there, to the outputs."""
    x = _encoded(_dropped(words, options), there, options)
    for width in options.hidden:
        x = _dropped(keras.layers.Dense(width, activation="relu")(x), options)
    return keras.layers.Dense(outputs, dtype="float32")(x)


def _encoded(words: Any, there: Any, options: TextOptions) -> Any:
    width = options.embedding_size
    if options.encoder == "gru":
        return keras.layers.GRU(width)(words, mask=there)
    shown = words * ops.cast(there, words.dtype)[..., None]
    if options.encoder == "conv":
        shown = keras.layers.Conv1D(width, _CONV_WORDS, padding="same", activation="relu")(shown)
        # What the convolution makes of the end of a text is not part of it.
        shown = shown * ops.cast(there, shown.dtype)[..., None]
        return ops.max(shown, axis=1)
    return ops.concatenate([_mean(words, there), ops.max(shown, axis=1)], axis=-1)


def _mean(values: Any, there: Any) -> Any:
    """Returns the mean over the last axis but one, of those that are there; of none: 0."""
    kept = ops.cast(there, values.dtype)[..., None]
    return ops.sum(values * kept, axis=-2) / ops.maximum(ops.sum(kept, axis=-2), 1.0)


def _dropped(x: Any, options: TextOptions) -> Any:
    return keras.layers.Dropout(options.dropout)(x) if options.dropout else x
