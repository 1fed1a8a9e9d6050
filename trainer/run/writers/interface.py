"""What a destination of metrics is: something that takes numbers of a step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping


class Writer(ABC):
    """Takes the figures of a step and a split, in ascending steps.

    Repeated writes of the same step and split are not allowed.
    """

    @abstractmethod
    def write(self, step: int, split: str, values: Mapping[str, float]) -> None:
        """Takes figures (name to value) that hold after `step` steps on `split`."""

    @abstractmethod
    def flush(self) -> None:
        """Makes everything written so far visible to readers."""

    @abstractmethod
    def close(self) -> None:
        """Flushes and lets go; nothing may be written afterwards."""
