"""TensorBoard event files, one directory a split: tensorboard/train, tensorboard/eval, …"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from typing import Any

from trainer.run.writers.interface import Writer

# As often as TensorBoard looks for news. A flush of an object store uploads the whole file.
_FLUSH_SECONDS = 30
# What TensorBoard's readers expect of a file's first event.
_FILE_VERSION = "brain.Event:2"


class TensorBoardWriter(Writer):
    """Writes each figure as a scalar; a directory appears with the first figure of its split."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._files: dict[str, _EventFile] = {}

    def write(self, step: int, split: str, values: Mapping[str, float]) -> None:
        """See `Writer`."""
        try:
            if split not in self._files:
                self._files[split] = _EventFile(os.path.join(self._path, split))
            self._files[split].write(step, values)
        except Exception:
            # What its buffer holds is lost, and it would fail for ever: the next begins anew.
            self._files.pop(split, None)
            raise

    def flush(self) -> None:
        """See `Writer`."""
        for file in self._files.values():
            file.flush()

    def close(self) -> None:
        """See `Writer`."""
        for file in self._files.values():
            file.close()


class _EventFile:
    """A file of events, which are TFRecords.

    Not `tf.summary`: its ops take as long as a quarter of the hundred steps of a small model.
    """

    _made = 0

    def __init__(self, folder: str) -> None:
        # Late, since TensorFlow takes seconds to import.
        import tensorflow as tf

        tf.io.gfile.makedirs(folder)
        _EventFile._made += 1
        name = f"{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}.{_EventFile._made}"
        self._writer = tf.io.TFRecordWriter(os.path.join(folder, f"events.out.tfevents.{name}.v2"))
        self._event(file_version=_FILE_VERSION)
        self.flush()

    def write(self, step: int, values: Mapping[str, float]) -> None:
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.plugins.scalar.summary_v2 import scalar_pb

        summary = Summary()
        for name, value in values.items():
            summary.MergeFrom(scalar_pb(name, value))
        self._event(step=step, summary=summary)
        if time.monotonic() - self._flushed > _FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        self._writer.flush()
        self._flushed = time.monotonic()

    def close(self) -> None:
        self._writer.close()

    def _event(self, **values: Any) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        self._writer.write(Event(wall_time=time.time(), **values).SerializeToString())
