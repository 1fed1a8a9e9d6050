"""The tf.data side of the input: super-batches of one replica, preprocessed on the host.

Reading and ordering happen in `feed` (NumPy, a background thread); here arrays become tensors,
columns get their names, and the Task's preprocessing runs over all rows of a super-batch at once.
"""

from __future__ import annotations

import re
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
from trainer.data.rows import DamagedShard, label_values
from trainer.data.rowseeds import places, row_seeds
from trainer.data.weighting import row_weights

Tensors = dict[str, tf.Tensor]

# What tf.debugging.Assert in a Task's preprocess says of a value that cannot be used.
_ASSERTION = re.compile(r"assertion failed: (.*)")
# One super-batch waits while one is in the making: more only costs memory.
PREFETCH = 1


@dataclass(frozen=True)
class Columns:
    """How input columns travel from blocks to named tensors.

    features: the columns that are wanted. codes: dictionary-coded strings stay int32 codes.
    """

    dataset: Dataset
    features: tuple[Feature, ...]
    codes: bool

    def arrays(self, block: Block, *, training: bool = False) -> dict[str, Any]:
        """Returns what a generator yields for the rows of `block`: packs whole, others by name.

        `label` and `weight` (float32 [rows]) stand beside them; class weights count in training.
        """
        arrays: dict[str, Any] = {f"pack/{key}": block.packs[key] for key in self._packs()}
        for feature in self.features:
            if not _is_packed(feature):
                arrays[f"column/{feature.name}"] = block.column(feature).values
        arrays["label"] = label_values(self.dataset, block)
        arrays["weight"] = row_weights(self.dataset, block, training=training)
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
                specs[f"column/{feature.name}"] = tf.TensorSpec([rows, *feature.shape], dtype)
        specs["label"] = tf.TensorSpec([rows], self.label_dtype)
        specs["weight"] = tf.TensorSpec([rows], tf.float32)
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
                features[feature.name] = arrays[f"column/{feature.name}"]
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
    augment: Callable[[Tensors, tf.Tensor], Tensors] | None = None,
    seed: int = 0,
) -> Iterator[tuple[Tensors, tf.Tensor, tf.Tensor]]:
    """Yields (features, label, weight) of one replica's super-batches, steps `step` to `last` - 1.

    Each tensor has shape [steps, global_batch / replicas, …], static. The last super-batch is
    whole, too: what lies beyond `last` is not for use. `augment` changes what `preprocess`
    returned, given a seed for each row that comes from (`seed`, step, place in the global batch).

    Raises (from the iterator):
      DamagedShard: what was read is not what the manifest says, or `preprocess` asserts that it
        cannot be used.
    """
    which = lanes_of(replica, replicas, lanes)
    rows = lanes.global_batch // replicas
    failure: list[Exception] = []

    def generate() -> Iterator[dict[str, Any]]:
        try:
            blocks = super_batches(columns.dataset, split, lanes, which, step=step, steps=steps)
            for first in range(step, last, steps):
                arrays = columns.arrays(next(blocks), training=True)
                if augment is not None:
                    arrays["seeds"] = row_seeds(seed, first, steps, where)
                yield arrays
        except Exception as error:
            failure.append(error)
            raise

    signature = columns.signature(steps * rows)
    if augment is not None:
        where = places(which, lanes.rows_per_step)
        signature["seeds"] = tf.TensorSpec([steps * rows, 2], tf.int32)

    def shape(value: tf.Tensor) -> tf.Tensor:
        return tf.reshape(value, [steps, rows, *value.shape[1:]])

    def finish(arrays: dict[str, tf.Tensor]) -> tuple[Any, tf.Tensor, tf.Tensor]:
        features = preprocess(columns.named(arrays))
        if augment is not None:
            features = augment(features, arrays["seeds"])
        label, weight = shape(arrays["label"]), shape(arrays["weight"])
        return {k: shape(v) for k, v in features.items()}, label, weight

    pipeline = (
        tf.data.Dataset.from_generator(generate, output_signature=signature)
        .map(finish)
        .prefetch(PREFETCH)
    )
    iterator = iter(pipeline)
    while True:
        try:
            features, label, weight = next(iterator)
        except StopIteration:
            return
        except tf.errors.OpError as error:
            if failure:  # tf.data wraps what the generator raised into text
                raise failure[0] from None
            if refused := _ASSERTION.search(error.message):
                raise DamagedShard(f"preprocess refuses a row of {split}: {refused[1]}") from None
            raise
        yield features, label, weight


def padded(arrays: dict[str, Any], rows: int) -> dict[str, Any]:
    """Returns the arrays [n, …] with copies of their first row, of weight 0, up to `rows` rows."""
    missing = rows - len(arrays["label"])
    if missing == 0:
        return arrays
    filled = {
        key: np.concatenate([values, np.repeat(values[:1], missing, axis=0)])
        for key, values in arrays.items()
    }
    filled["weight"][-missing:] = 0
    return filled
