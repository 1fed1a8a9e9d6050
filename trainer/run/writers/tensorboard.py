"""TensorBoard event files, one directory a split: tensorboard/train, tensorboard/eval, …"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from trainer.run.writers.interface import Writer


class TensorBoardWriter(Writer):
    """Writes each figure as a scalar; a directory appears with the first figure of its split."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._writers: dict[str, Any] = {}

    def write(self, step: int, split: str, values: Mapping[str, float]) -> None:
        """See `Writer`."""
        # Not before the first figure: no TensorFlow op may run before the strategy is built.
        import tensorflow as tf
        from tensorboard.plugins.scalar.summary_v2 import scalar_pb

        if split not in self._writers:
            self._writers[split] = tf.summary.create_file_writer(os.path.join(self._path, split))
        # All figures at once: a `tf.summary.scalar` each takes as long as a quarter of the hundred
        # steps of a small model.
        summaries = [scalar_pb(name, value) for name, value in values.items()]
        merged = b"".join(summary.SerializeToString() for summary in summaries)
        with self._writers[split].as_default():
            tf.summary.experimental.write_raw_pb(merged, step=step)

    def flush(self) -> None:
        """See `Writer`."""
        for writer in self._writers.values():
            writer.flush()

    def close(self) -> None:
        """See `Writer`."""
        for writer in self._writers.values():
            writer.close()
