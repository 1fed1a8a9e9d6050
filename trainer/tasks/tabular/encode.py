"""From raw columns to model inputs: what is learned from the training split's statistics.

Numbers: (x - mean) / std, clipped; missing becomes 0 beside an indicator. Words and small whole
numbers: an index, 0 for missing, 1 for one that training did not see (or too rare), then the rest.
All of it is plain TensorFlow, row by row, so that the export carries it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from trainer.data.blocks import NULL_INT
from trainer.data.manifest import Feature
from trainer.data.statistics import FeatureStatistics
from trainer.tasks.tabular.options import TabularOptions

MISSING, UNKNOWN = 0, 1
FIRST_WORD = 2
# Beyond ten standard deviations a value says no more than "very large".
CLIP = 10.0


@dataclass(frozen=True)
class Number:
    """Normalisation of one numeric column (scalar or fixed-size list)."""

    feature: Feature
    mean: float
    std: float
    has_missing: bool

    @classmethod
    def of(cls, feature: Feature, figures: FeatureStatistics) -> Number:
        """Reads mean and std (both 0 where every value is missing)."""
        return cls(
            feature,
            figures.mean or 0.0,
            figures.std or 1.0,
            feature.nullable or figures.missing > 0,
        )

    def __call__(self, value: tf.Tensor) -> list[tf.Tensor]:
        """Maps [rows, …] to float32 [rows, size]: values, then an indicator if needed."""
        missing = _missing(value)
        if value.dtype == tf.int64:
            # Subtract while it is exact: microseconds since 1970 do not fit a float32.
            center = int(self.mean)
            centered = tf.cast(value - tf.where(missing, value, center), tf.float32)
            scaled = (centered - (self.mean - center)) / self.std
        else:
            scaled = (value - self.mean) / self.std
        scaled = tf.where(missing, 0.0, tf.clip_by_value(scaled, -CLIP, CLIP))
        columns = [scaled]
        if self.has_missing:
            columns.append(tf.cast(missing, tf.float32))
        return [c if c.shape.rank == 2 else tf.reshape(c, [-1, self.size]) for c in columns]

    @property
    def size(self) -> int:
        """Values a row."""
        return math.prod(n or 0 for n in self.feature.shape)


def _missing(value: tf.Tensor) -> tf.Tensor:
    return tf.math.is_nan(value) if value.dtype == tf.float32 else value == NULL_INT


@dataclass(frozen=True)
class SmallInteger:
    """Index of a whole-number column with few values: missing, unknown, then low..high."""

    feature: Feature
    low: int
    high: int

    @property
    def size(self) -> int:
        """Number of indices."""
        return self.high - self.low + 1 + FIRST_WORD

    def __call__(self, value: tf.Tensor) -> tf.Tensor:
        """Maps int64 [rows] to int32 [rows]."""
        inside = (value >= self.low) & (value <= self.high)
        place = tf.cast(tf.where(inside, value - self.low, 0), tf.int32) + FIRST_WORD
        return tf.where(inside, place, tf.where(_missing(value), MISSING, UNKNOWN))


class Words(tf.Module):
    """Index of a string column, from words or (during training) from dictionary codes."""

    def __init__(self, feature: Feature, vocabulary: Sequence[str]) -> None:
        super().__init__()
        self.feature = feature
        self.size = len(vocabulary) + FIRST_WORD
        index = {word: FIRST_WORD + place for place, word in enumerate(vocabulary)}
        # One key at least: a table without keys has no type. The empty string is null anyway.
        keys = ["", *index]
        self.table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(
                tf.constant(keys), tf.constant([MISSING, *index.values()], tf.int32)
            ),
            default_value=UNKNOWN,
        )
        dictionary = feature.dictionary or ()
        self.by_code = np.array(
            [MISSING, *(index.get(word, UNKNOWN) for word in dictionary)], np.int32
        )

    def __call__(self, value: tf.Tensor) -> tf.Tensor:
        """Maps string or int32 codes [rows] to int32 [rows]."""
        if value.dtype == tf.string:
            return self.table.lookup(value)
        return tf.gather(tf.constant(self.by_code), value + 1)


def vocabulary_of(figures: FeatureStatistics, options: TabularOptions) -> list[str]:
    """Returns the words worth an embedding of their own, the most frequent first."""
    ranked = figures.vocabulary or ()
    kept = [word for word, count in ranked if count >= options.least_count and word]
    return kept[: options.most_categories]


def small_integer(
    feature: Feature, figures: FeatureStatistics, options: TabularOptions
) -> SmallInteger | None:
    """Returns how to index a whole-number column, or None if it has too many values."""
    if feature.dtype != "int64" or feature.shape or figures.distinct is None:
        return None
    if figures.min is None or figures.max is None:
        return None
    low, high = int(figures.min), int(figures.max)
    # Twice as many indices as values at most: 1, 2 and 1,000,000 is not a category.
    few = 2 < figures.distinct <= options.categorical_integers
    if not few or high - low + 1 > 2 * options.categorical_integers:
        return None
    return SmallInteger(feature, low, high)
