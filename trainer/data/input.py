"""The tf.data side of the input: super-batches of one replica, preprocessed on the host.

Reading and ordering happen in `feed` (NumPy, a background thread); here arrays become tensors,
columns get their names, and the Task's preprocessing runs over all rows of a super-batch at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from trainer.data.blocks import Block
from trainer.data.dataset import Dataset
from trainer.data.feed import lanes_of, super_batches
from trainer.data.lanes import Lanes
from trainer.data.manifest import Feature
from trainer.data.rows import label_values

Tensors = dict[str, tf.Tensor]

# One super-batch in the making while one is in use: more only costs memory.
PREFETCH = 2


@dataclass(frozen=True)
class Columns:
    """How input columns travel from blocks to named tensors.

    features: the columns that are wanted. codes: dictionary-coded strings stay int32 codes.
    """

    dataset: Dataset
    features: tuple[Feature, ...]
    codes: bool

    def arrays(self, block: Block) -> dict[str, Any]:
        """Returns what a generator yields for the rows of `block`: packs whole, others by name."""
        arrays: dict[str, Any] = {f"pack/{key}": block.packs[key] for key in self._packs()}
        for feature in self.features:
            if not _is_packed(feature):
                arrays[feature.name] = block.column(feature).values
        arrays["label"] = label_values(self.dataset, block)
        return arrays

    def signature(self, rows: int) -> dict[str, tf.TensorSpec]:
        """Returns the specs of `arrays` for blocks of `rows` rows."""
        widths: dict[str, int] = {}
        for feature in self.dataset.manifest.features:
            if feature.storage is not None and _is_packed(feature):
                widths[feature.storage.key] = widths.get(feature.storage.key, 0) + 1
        types = {"float32": tf.float32, "int64": tf.int64, "code": tf.int32}
        specs = {
            f"pack/{key}": tf.TensorSpec([rows, widths[key]], types[key]) for key in self._packs()
        }
        for feature in self.features:
            if not _is_packed(feature):
                dtype = tf.string if feature.dtype == "string" else feature.dtype
                specs[feature.name] = tf.TensorSpec([rows, *feature.shape], dtype)
        specs["label"] = tf.TensorSpec([rows], self.label_dtype)
        return specs

    @property
    def label_dtype(self) -> Any:
        """float32, or int32 for a multiclass label."""
        return tf.int32 if self.dataset.manifest.label.kind == "multiclass" else tf.float32

    def named(self, arrays: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Returns the raw features by name (a graph of slices and, for words, one gather)."""
        features = {}
        for feature in self.features:
            storage = feature.storage
            if storage is None or not _is_packed(feature):
                features[feature.name] = arrays[feature.name]
                continue
            value = arrays[f"pack/{storage.key}"][:, storage.index]
            if feature.dictionary is not None and not self.codes:
                # Null is code -1: shifted by one, it is the empty string in front.
                words = tf.constant(["", *feature.dictionary])
                value = tf.gather(words, value + 1)
            features[feature.name] = value
        return features

    def _packs(self) -> list[str]:
        return sorted(
            {f.storage.key for f in self.features if f.storage is not None and _is_packed(f)}
        )


def _is_packed(feature: Feature) -> bool:
    return feature.storage is not None and feature.storage.kind == "packed"


def training_batches(
    columns: Columns,
    split: str,
    preprocess: Callable[[Tensors], Tensors],
    lanes: Lanes,
    *,
    replica: int,
    replicas: int,
    step: int,
    last: int,
    steps: int,
) -> Iterator[tuple[Tensors, tf.Tensor, tf.Tensor]]:
    """Yields (features, label, weight) of one replica's super-batches, steps `step` to `last` - 1.

    Each tensor has shape [steps, global_batch / replicas, …], static; weights are 1. The last
    super-batch is whole, too: what lies beyond `last` is not for use.

    Raises (from the iterator):
      DamagedShard: what was read is not what the manifest says.
    """
    which = lanes_of(replica, replicas, lanes)
    rows = lanes.global_batch // replicas
    failure: list[Exception] = []

    def generate() -> Iterator[dict[str, Any]]:
        try:
            blocks = super_batches(columns.dataset, split, lanes, which, step=step, steps=steps)
            for block in itertools.islice(blocks, -(-(last - step) // steps)):
                yield columns.arrays(block)
        except Exception as error:
            failure.append(error)
            raise

    def shape(value: tf.Tensor) -> tf.Tensor:
        return tf.reshape(value, [steps, rows, *value.shape[1:]])

    def finish(arrays: dict[str, tf.Tensor]) -> tuple[Any, tf.Tensor, tf.Tensor]:
        features = preprocess(columns.named(arrays))
        weight = tf.ones([steps, rows], tf.float32)
        return {k: shape(v) for k, v in features.items()}, shape(arrays["label"]), weight

    pipeline = (
        tf.data.Dataset.from_generator(generate, output_signature=columns.signature(steps * rows))
        .map(finish)
        .prefetch(PREFETCH)
    )
    iterator = iter(pipeline)
    while True:
        try:
            features, label, weight = next(iterator)
        except StopIteration:
            return
        except tf.errors.OpError:
            if failure:  # tf.data wraps what the generator raised into text
                raise failure[0] from None
            raise
        yield features, label, weight


def padded(arrays: dict[str, Any], rows: int) -> dict[str, Any]:
    """Returns the arrays [n, …] with their first row repeated up to `rows` rows."""
    missing = rows - len(arrays["label"])
    if missing == 0:
        return arrays
    return {
        key: np.concatenate([values, np.repeat(values[:1], missing, axis=0)])
        for key, values in arrays.items()
    }
