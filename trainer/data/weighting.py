"""How much a row counts: the value of its weight column times the weight of its class.

The column belongs to the data, so evaluation heeds it too; class weights steer the training alone.
Whatever is wrong with either is found in the statistics, before a row is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from trainer.data.blocks import Block
from trainer.data.dataset import Dataset
from trainer.data.rows import label_values
from trainer.errors import UsageError, suggestion

ClassWeights = Mapping[str, float] | Literal["balanced"]


def weighted(
    dataset: Dataset, weight_column: str | None, class_weights: ClassWeights | None = None
) -> Dataset:
    """Returns the data set with its weight column set apart and the weight of each class.

    Args:
      dataset: as opened.
      weight_column: no input any more from here on; None: every row counts 1.
      class_weights: by class (one that is not named counts 1), or "balanced": rows / (classes *
        rows of the class), in the training split.

    Raises:
      UsageError: there is no such column or class, or the column holds no weights.
    """
    manifest = dataset.manifest
    if weight_column is not None:
        feature = manifest.feature(weight_column)
        if feature.dtype == "string" or feature.shape or weight_column == manifest.label.name:
            what = "the label" if weight_column == manifest.label.name else "not a number a row"
            raise UsageError(f"weight_column ({weight_column}): it is {what}")
        manifest = manifest.model_copy(update={"weight_column": weight_column})
        dataset = replace(dataset, manifest=manifest)
    if class_weights is None:
        return dataset
    classes = manifest.label.classes
    if classes is None:
        raise UsageError(
            f"class_weights: the label {manifest.label.name!r} is a number (regression), "
            "it has no classes"
        )
    if class_weights == "balanced":
        counts = _counts(dataset, [str(c) for c in classes])
        weights = counts.sum() / (len(classes) * np.maximum(counts, 1))
    else:
        weights = _listed(class_weights, [str(c) for c in classes])
    return replace(dataset, class_weights=tuple(float(w) for w in weights))


def check_weights(dataset: Dataset, split: str) -> None:
    """Refuses a weight column that holds no weights in `split`, and weights that are all 0.

    Raises:
      UsageError: a row has no weight or a negative one, or no row has any.
    """
    name = dataset.manifest.weight_column
    if name is not None:
        figures = dataset.split_statistics(split).features[name]
        where = f"weight_column ({name}), split {split!r}:"
        if figures.missing:
            raise UsageError(
                f"{where} {figures.missing} of {figures.count + figures.missing} rows have no "
                "value: a row that is not to count has the weight 0"
            )
        if figures.min is not None and figures.min < 0:
            raise UsageError(f"{where} the smallest weight is {figures.min:g}, not >= 0")
        if not figures.max:
            raise UsageError(f"{where} all weights are 0, no row counts")
    if dataset.class_weights is not None and split == "train":
        counts = _counts(dataset, [str(c) for c in dataset.manifest.label.classes or ()])
        if not (counts * dataset.class_weights).any():
            raise UsageError("class_weights: the classes of all rows weigh 0, no row counts")


def row_weights(dataset: Dataset, block: Block, *, training: bool) -> npt.NDArray[np.float32]:
    """Returns float32 [rows]: the weight column, in training times the weight of the class."""
    name = dataset.manifest.weight_column
    if name is None:
        weights = np.ones(block.rows, np.float32)
    else:
        weights = block.column(dataset.manifest.feature(name)).values.astype(np.float32)
    if training and dataset.class_weights is not None:
        by_class = np.asarray(dataset.class_weights, np.float32)
        weights = weights * by_class[label_values(dataset, block).astype(np.int64)]
    return weights


def _listed(given: Mapping[str, float], classes: list[str]) -> npt.NDArray[np.float64]:
    for name in given:
        if name not in classes:
            raise UsageError(
                f"class_weights: there is no class {name!r}{suggestion(name, classes)} "
                f"(there are {', '.join(classes)})"
            )
    return np.array([given.get(name, 1.0) for name in classes])


def _counts(dataset: Dataset, classes: list[str]) -> npt.NDArray[np.float64]:
    """Rows of each class in the training split."""
    label = dataset.manifest.label.name
    counted = dataset.split_statistics("train").features[label].vocabulary
    if counted is None:
        raise UsageError(
            f"{dataset.path}: statistics.json does not say how many rows each class of {label!r} "
            "has: shard the data again"
        )
    rows = dict(counted)
    return np.array([rows.get(name, 0) for name in classes], np.float64)
