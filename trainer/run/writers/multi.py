"""One writer that stands for several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trainer.run.writers.interface import Writer


class MultiWriter(Writer):
    """Hands everything to each of `writers`, in order."""

    def __init__(self, writers: Sequence[Writer]) -> None:
        self._writers = tuple(writers)

    def write(self, step: int, split: str, values: Mapping[str, float]) -> None:
        """See `Writer`."""
        for writer in self._writers:
            writer.write(step, split, values)

    def flush(self) -> None:
        """See `Writer`."""
        for writer in self._writers:
            writer.flush()

    def close(self) -> None:
        """See `Writer`."""
        for writer in self._writers:
            writer.close()
