"""Which words have an embedding of their own: learned from the training rows, kept as a weight.

statistics.json counts whole values, not words, so the first rows of the training split are read
once, when a run starts; every worker reads the same. As a weight of the model the vocabulary
stands in each checkpoint, and a run that is loaded back, without the rows, has the one that it was
trained with.
"""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from trainer.data.dataset import Dataset
from trainer.data.manifest import Feature
from trainer.data.rows import DamagedShard, raw_features, read_rows
from trainer.errors import UsageError
from trainer.tasks.text import tokens
from trainer.tasks.text.options import TextOptions

Fingerprints = npt.NDArray[np.int64]

# Larger than any fingerprint: fills up what the words leave.
_NO_WORD = np.iinfo(np.int64).max


def learned(data: Dataset, column: Feature, options: TextOptions) -> Fingerprints:
    """Returns the fingerprints of the most frequent words of `column`, at most `vocabulary`.

    Raises:
      UsageError: a shard is damaged.
    """
    last = min(options.vocabulary_rows, data.split("train").rows)
    found: list[Fingerprints] = []
    counts: list[Any] = []
    try:
        for block in read_rows(data, "train", 0, last):
            texts = tf.constant(raw_features(data, block, [column.name])[column.name])
            words = tokens.words(texts, length=options.length, lowercase=options.lowercase)
            values, times = np.unique(
                tokens.fingerprints(words, options.length), return_counts=True
            )
            found.append(values)
            counts.append(times)
    except DamagedShard as error:
        raise UsageError(str(error)) from None
    values, place = np.unique(np.concatenate(found), return_inverse=True)
    times = np.bincount(place, np.concatenate(counts))
    often = (times >= options.least_count) & (values != tokens.NONE)
    values, times = values[often], times[often]
    # Ties by fingerprint: the same on every worker.
    return values[np.argsort(-times, kind="stable")][: options.vocabulary]


class Vocabulary(keras.layers.Layer):
    """Maps fingerprints to indices: 0 for none, then `buckets` that others share, then the words.

    size: how many indices there are, whatever words were found.
    """

    def __init__(self, most: int, buckets: int, **named: Any) -> None:
        super().__init__(**named)
        self.size = 1 + buckets + most
        self._buckets = buckets
        self._bits = max(1, (most - 1).bit_length())
        self.fingerprints = self.add_weight(
            name="fingerprints",
            shape=(1 << self._bits,),
            dtype="int64",
            initializer=lambda shape, dtype: tf.fill(shape, tf.constant(_NO_WORD, tf.int64)),
            trainable=False,
        )

    def fill(self, words: Fingerprints) -> None:
        """Takes the words, at most `most`."""
        table = np.full(1 << self._bits, _NO_WORD)
        table[: len(words)] = np.sort(words)
        self.fingerprints.assign(table)

    def call(self, fingerprints: tf.Tensor) -> tf.Tensor:
        """Maps int64 [rows, length] to int32 [rows, length]."""
        table = tf.convert_to_tensor(self.fingerprints)
        # A binary search of gathers: XLA compiles tf.searchsorted to comparing all with all.
        place = tf.zeros_like(fingerprints, tf.int32)
        for bit in reversed(range(self._bits)):
            further = place + (1 << bit)
            place = tf.where(tf.gather(table, further) <= fingerprints, further, place)
        known = tf.gather(table, place) == fingerprints
        shared = 1 + tf.cast(fingerprints % self._buckets, tf.int32)
        index = tf.where(known, 1 + self._buckets + place, shared)
        return tf.where(fingerprints == tokens.NONE, tokens.NONE, index)

    def compute_output_spec(self, fingerprints: Any) -> Any:
        """As the input, in int32."""
        return keras.KerasTensor(fingerprints.shape, "int32")
