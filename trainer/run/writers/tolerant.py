"""A writer whose failures are said, and cost no training: a line of figures is not worth a run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping

from trainer.run.writers.interface import Writer


class TolerantWriter(Writer):
    """Hands everything to `writer`; says a failure once, until a write has succeeded again.

    what: names the destination for people. say: takes a line.
    """

    def __init__(self, writer: Writer, what: str, say: Callable[[str], None]) -> None:
        import tensorflow as tf

        self._writer = writer
        self._what = what
        self._say = say
        self._failing = False
        self._errors = (OSError, tf.errors.OpError)

    def write(self, step: int, split: str, values: Mapping[str, float]) -> None:
        """See `Writer`."""
        try:
            self._writer.write(step, split, values)
            self._failing = False
        except self._errors as error:
            if not self._failing:
                self._failing = True
                why = getattr(error, "strerror", None) or getattr(error, "message", error)
                self._say(
                    f"castell: warning: the figures of step {step} could not be written to "
                    f"{self._what}: {why}; training goes on"
                )

    def flush(self) -> None:
        """See `Writer`."""
        with contextlib.suppress(*self._errors):
            self._writer.flush()

    def close(self) -> None:
        """See `Writer`."""
        with contextlib.suppress(*self._errors):
            self._writer.close()
