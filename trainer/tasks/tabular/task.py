"""The tabular task: embeddings and normalised numbers into an MLP, for any kind of label."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import keras
import tensorflow as tf
from pydantic import BaseModel

from trainer.data.dataset import Dataset
from trainer.data.manifest import Feature, Manifest
from trainer.errors import UsageError, suggestion
from trainer.task import Batch, Task, Tensors
from trainer.tasks.head import Head
from trainer.tasks.tabular.encode import (
    Number,
    SmallInteger,
    Words,
    small_integer,
    vocabulary_of,
)
from trainer.tasks.tabular.options import TabularOptions


class Tabular(Task):
    """Predicts the label from scalar and fixed-size list columns."""

    Options: ClassVar[type[BaseModel]] = TabularOptions
    takes_codes = True
    options: TabularOptions

    def inputs(self, manifest: Manifest) -> tuple[Feature, ...]:
        """All columns but variable-length lists and lists of words; `columns`/`ignore` choose."""
        known = [f.name for f in manifest.inputs]
        for name in (*(self.options.columns or ()), *self.options.ignore):
            if name not in known:
                raise UsageError(f"column {name!r} is not in the data{suggestion(name, known)}")
        chosen = [
            f
            for f in manifest.inputs
            if None not in f.shape
            and not (f.dtype == "string" and f.shape)
            and f.name in (self.options.columns or known)
            and f.name not in self.options.ignore
        ]
        for feature in chosen:
            if feature.logical == "bytes":
                raise UsageError(
                    f"column {feature.name} holds files: images are read by --task image; to learn "
                    f"from the other columns, --ignore {feature.name}"
                )
        if not chosen:
            raise UsageError("the tabular task has no input column: see --columns and --ignore")
        return tuple(chosen)

    def build(self, data: Dataset) -> None:
        """Reads vocabularies and moments off the training split, then makes the model."""
        figures = data.split_statistics("train").features
        self.head = Head.of(data)
        self.numbers: list[Number] = []
        self.categories: list[Words | SmallInteger] = []
        for feature in self.inputs(data.manifest):
            statistics = figures[feature.name]
            if feature.dtype == "string":
                self.categories.append(Words(feature, vocabulary_of(statistics, self.options)))
                continue
            self.numbers.append(Number.of(feature, statistics))
            if index := small_integer(feature, statistics, self.options):
                self.categories.append(index)
        self.model = self._model(self.head.outputs)

    def _model(self, outputs: int) -> keras.Model:
        inputs, parts = {}, []
        if width := sum(_width(number) for number in self.numbers):
            inputs["numbers"] = keras.Input((width,), name="numbers")
            parts.append(inputs["numbers"])
        if self.categories:
            indices = keras.Input((len(self.categories),), dtype="int32", name="categories")
            inputs["categories"] = indices
            for place, category in enumerate(self.categories):
                size = _embedding_size(category.size, self.options.embedding_size)
                name = f"embed_{place}"
                parts.append(
                    keras.layers.Embedding(category.size, size, name=name)(indices[:, place])
                )
        x = keras.layers.Concatenate()(parts) if len(parts) > 1 else parts[0]
        for width in self.options.hidden:
            x = keras.layers.Dense(width, activation="relu")(x)
            if self.options.dropout:
                x = keras.layers.Dropout(self.options.dropout)(x)
        return keras.Model(inputs, keras.layers.Dense(outputs, dtype="float32")(x), name="tabular")

    def preprocess(self, features: Tensors) -> Tensors:
        """Returns `numbers` float32 [rows, width] and `categories` int32 [rows, columns]."""
        encoded = {}
        if self.numbers:
            columns = [c for number in self.numbers for c in number(features[number.feature.name])]
            encoded["numbers"] = tf.concat(columns, axis=1)
        if self.categories:
            indices = [category(features[category.feature.name]) for category in self.categories]
            encoded["categories"] = tf.stack(indices, axis=1)
        return encoded

    def loss(self, batch: Batch, training: bool) -> tf.Tensor:
        """Cross-entropy; for regression half the squared error in standard deviations."""
        return self.head.loss(batch.label, self.model(batch.features, training=training))

    def serve(self, features: Tensors) -> Tensors:
        """Returns `probability`, `probabilities` or `prediction`, as the label wants."""
        return self.head.answer(self.model(features, training=False))

    def metrics(self) -> Mapping[str, keras.metrics.Metric]:
        """Those of the label's kind."""
        return self.head.metrics()


def _width(number: Number) -> int:
    return number.size * (2 if number.has_missing else 1)


def _embedding_size(categories: int, largest: int) -> int:
    """1.6 * n^0.56 (a rule of thumb from fastai's tabular models), bounded."""
    return max(1, min(largest, round(1.6 * categories**0.56)))
