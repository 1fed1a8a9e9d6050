"""What is trained: the same for every side.

Keras comes as an argument, since Orbit works with Keras 2 (tf_keras) only.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

BATCH = 64
CLASSES = 10
LEARNING_RATE = 1e-3
# The cosine's end: far, so that all turns see about the same rate.
DECAY_STEPS = 1_000_000
STEPS_PER_CALL = 50
LOG_EVERY = 100
ROWS = 8192
# Ours is two super-batches ahead; the others may be as many steps ahead.
PREFETCH_STEPS = 2 * STEPS_PER_CALL


@dataclass(frozen=True)
class Case:
    """A model and its rows. turn: steps between two looks at the clock (tenths of a second)."""

    name: str
    shape: tuple[int, ...]
    turn: int

    def model(self, keras: Any) -> Any:
        layers = keras.layers
        if self.name == "mlp":
            stack = [layers.Dense(64, activation="relu"), layers.Dense(64, activation="relu")]
        else:
            stack = [
                layers.Conv2D(8, 3, activation="relu"),
                layers.MaxPooling2D(),
                layers.Conv2D(16, 3, activation="relu"),
                layers.MaxPooling2D(),
                layers.Flatten(),
            ]
        return keras.Sequential([layers.Input(self.shape), *stack, layers.Dense(CLASSES)])

    def rows(self) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int32]]:
        """Returns features [ROWS, *shape] and labels [ROWS], which a model learns slowly."""
        random = np.random.default_rng(0)
        labels = random.integers(0, CLASSES, ROWS).astype(np.int32)
        centers = random.normal(size=(CLASSES, *self.shape))
        features = 0.2 * centers[labels] + random.normal(size=(ROWS, *self.shape))
        return features.astype(np.float32), labels

    def batches(self, part: int = 0, parts: int = 1, replicas: int = 1) -> Any:
        """Returns an endless tf.data.Dataset of (features, labels), BATCH / replicas rows each.

        It holds every `parts`-th row, from `part` on, in batches that were made before: what is
        raced is the loop, and tf.data takes longer to gather 64 rows than a small model to learn
        from them.
        """
        import tensorflow as tf

        features, labels = (
            array[part::parts].reshape(-1, BATCH // replicas, *array.shape[1:])
            for array in self.rows()
        )
        dataset = tf.data.Dataset.from_tensor_slices((features, labels))
        return dataset.shuffle(len(labels)).repeat()


CASES = {case.name: case for case in (Case("mlp", (64,), 500), Case("cnn", (16, 16, 1), 200))}
