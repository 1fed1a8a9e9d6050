"""What an action is told, and what it may ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Report:
    """The figures of one interval.

    step: optimizer steps done. split: "train" for a training interval, else the evaluated split.
    metrics: name to figure. save(): keeps a checkpoint of this very step, once however often it is
    called. stop(): ends the run after this step, as completed; all workers leave together. It takes
    the reason, for the log and status.json.
    """

    step: int
    split: str
    metrics: Mapping[str, float]
    save: Callable[[], None]
    stop: Callable[..., None]


Action = Callable[[Report], None]
