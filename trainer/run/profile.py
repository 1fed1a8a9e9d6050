"""A trace of some steps for TensorBoard's profiler (`tensorboard --logdir RUN/tensorboard`).

Tracing begins and ends where a call of the step function does; the loop takes the traced steps'
ends as ends of calls, so that no others are in the trace.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

import tensorflow as tf


class Profile:
    """Traces some steps of this process.

        with Profile((100, 120), directory, say) as profile:
            profile.at(0)        # before the first call: nothing
            profile.at(100)      # tracing begins with the call that comes now
            profile.at(120)      # and ends

    A trace that cannot be made is said, and costs nothing else.

    Args:
      steps: after which it begins and with which it ends, as `config.profiled_steps`; empty: never.
      directory: of TensorBoard's files.
      say: takes a line for people.
    """

    def __init__(self, steps: Sequence[int], directory: str, say: Callable[[str], None]) -> None:
        self._first, self._last = steps or (0, 0)
        self._directory = directory
        self._say = say
        self._began: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._began is not None:
            self._stop("the end of the run")

    def at(self, step: int) -> None:
        """Takes that `step` steps are done, and the next ones are about to begin."""
        if self._began is not None and step >= self._last:
            self._stop(str(step))
        elif self._began is None and self._first <= step < self._last:
            self._start(step)

    def _start(self, step: int) -> None:
        try:
            tf.profiler.experimental.start(self._directory)
            self._began = step
        except tf.errors.OpError as error:
            self._last = self._first  # not again
            self._say(f"castell: warning: no trace of these steps: {error.message}")

    def _stop(self, end: str) -> None:
        began, self._began = self._began, None
        try:
            tf.profiler.experimental.stop()
        except (tf.errors.OpError, OSError) as error:
            self._say(f"castell: warning: the trace could not be written: {error}")
            return
        self._say(
            f"profile: steps {began} to {end} are traced, see them with `pip install xprof` and "
            f"`tensorboard --logdir {self._directory}`"
        )
