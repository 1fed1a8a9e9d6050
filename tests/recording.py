"""Tabular Tasks that leave signs in a file: which rows a step has seen, or that it is traced."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from trainer.task import Batch, Tensors
from trainer.tasks.tabular.task import Tabular

# A file that this process appends to, and the seconds that a step takes at least.
FILE = "RECORDING_FILE"
PACE = "RECORDING_PACE"
PHASE = "RECORDING_PHASE"
# A column that no two rows share; it passes through `preprocess` as it is.
MARK = "x1"


class Recording(Tabular):
    """One loss call is one step: its rows' marks are appended to the file, in their order."""

    def preprocess(self, features: Tensors) -> Tensors:
        return {**super().preprocess(features), MARK: features[MARK]}

    def loss(self, batch: Batch, training: bool) -> tf.Tensor:
        features = dict(batch.features)
        marks = features.pop(MARK)
        losses = super().loss(Batch(features, batch.label, batch.weight), training)
        written = tf.numpy_function(_write, [marks], tf.float32)
        return losses + tf.ensure_shape(written, [])

    def serve(self, features: Tensors) -> Tensors:
        return super().serve({k: v for k, v in features.items() if k != MARK})


def _write(marks: npt.NDArray[np.float32]) -> Any:
    with open(os.environ[FILE], "ab", buffering=0) as file:
        file.write(marks.tobytes())
    time.sleep(float(os.environ.get(PACE, "0")))
    return np.float32(0)


class Slow(Tabular):
    """Takes a minute to be traced, for training or for evaluation, and says when that begins."""

    def loss(self, batch: Batch, training: bool) -> tf.Tensor:
        if training == (os.environ[PHASE] == "training"):
            with open(os.environ[FILE], "ab") as file:
                file.write(b"tracing")
            time.sleep(60)
        return super().loss(batch, training)
