"""The text task: one column of text into a small encoder, for any kind of label."""

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
from trainer.tasks.text import tokens
from trainer.tasks.text.net import piece_net, word_net
from trainer.tasks.text.options import TextOptions
from trainer.tasks.text.vocabulary import Vocabulary, learned

_WORD_BUCKETS = 1_000
_PIECE_BUCKETS = 20_000


class Text(Task):
    """Predicts the label from a text."""

    Options: ClassVar[type[BaseModel]] = TextOptions
    options: TextOptions

    def inputs(self, manifest: Manifest) -> tuple[Feature, ...]:
        """The column that `text` names; else the only text, or the only one of many values."""
        strings = [f for f in manifest.inputs if f.dtype == "string" and not f.shape]
        texts = [f for f in strings if f.logical != "bytes"]
        # Few different values, a dictionary: a category rather than a text.
        free = [f for f in texts if f.dictionary is None]
        guessed = free if self.options.text is None and len(free) == 1 else texts
        column = choose(
            manifest, key="text", named=self.options.text, candidates=guessed, wanted="text"
        )
        return (column,)

    def build(self, data: Dataset) -> None:
        """Makes the model, its vocabulary empty still."""
        (self.column,) = self.inputs(data.manifest)
        self.head = Head.of(data)
        options, outputs = self.options, self.head.outputs
        if options.tokens == "subwords":
            self.model = piece_net(self._buckets, outputs, options)
            return
        self.vocabulary = Vocabulary(options.vocabulary, self._buckets, name="vocabulary")
        self.model = word_net(self.vocabulary, outputs, options)

    def learn(self, data: Dataset) -> None:
        """Takes the vocabulary from the training split."""
        if self.options.tokens == "words":
            self.vocabulary.fill(learned(data, self.column, self.options))

    def preprocess(self, features: Tensors) -> Tensors:
        """Returns `words` int64 [rows, length], or `pieces` int32 [rows, length, pieces]."""
        options = self.options
        found = tokens.words(
            features[self.column.name], length=options.length, lowercase=options.lowercase
        )
        if options.tokens == "subwords":
            return {"pieces": tokens.pieces(found, options.length, self._buckets)}
        return {"words": tokens.fingerprints(found, options.length)}

    def loss(self, batch: Batch, training: bool) -> tf.Tensor:
        """Cross-entropy; for regression half the squared error in standard deviations."""
        return self.head.loss(batch.label, self._logits(batch.features, training))

    def serve(self, features: Tensors) -> Tensors:
        """Returns `probability`, `probabilities` or `prediction`, as the label wants."""
        return self.head.answer(self._logits(features, False))

    def metrics(self) -> Mapping[str, keras.metrics.Metric]:
        """Those of the label's kind."""
        return self.head.metrics()

    def _logits(self, features: Tensors, training: bool) -> tf.Tensor:
        (numbers,) = features.values()
        return self.model(numbers, training=training)

    @property
    def _buckets(self) -> int:
        default = _PIECE_BUCKETS if self.options.tokens == "subwords" else _WORD_BUCKETS
        return self.options.buckets or default
