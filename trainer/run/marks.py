"""best.json: which checkpoints were the best by a metric, best first.

It stands beside the checkpoints and is replaced whole. A mark holds the figure; the commit that it
names holds the weights, and only a commit that is whole counts. No TensorFlow here.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from trainer.run import atomic, commits
from trainer.run.commits import Commit
from trainer.run.damage import DAMAGED

NAME = "best.json"
Mode = Literal["min", "max"]


@dataclass(frozen=True)
class Mark:
    """step: of the checkpoint. metric, value: by which it is among the best."""

    step: int
    metric: str
    value: float


def read(directory: str) -> list[Mark]:
    """Returns the marks of a run's checkpoints, best first; none if the file is damaged."""
    try:
        with open(os.path.join(directory, NAME), encoding="utf-8") as file:
            return [
                Mark(int(m["step"]), str(m["metric"]), float(m["value"])) for m in json.load(file)
            ]
    except DAMAGED:
        return []


def write(directory: str, marks: Sequence[Mark]) -> None:
    """Replaces best.json.

    Raises:
      OSError: disk full; the old one stays.
    """
    atomic.write_json(os.path.join(directory, NAME), [asdict(mark) for mark in marks])


def ranked(marks: Sequence[Mark], new: Mark, mode: Mode, keep: int) -> list[Mark]:
    """Returns the best `keep` of `marks` and `new`, best first; of equal ones the earlier step.

    A mark of the same step is replaced, those of another metric are dropped.
    """
    others = [m for m in marks if m.step != new.step and m.metric == new.metric]
    sign = 1 if mode == "min" else -1
    return sorted([*others, new], key=lambda mark: (sign * mark.value, mark.step))[:keep]


def better(value: float, than: float, mode: Mode, delta: float = 0.0) -> bool:
    """Whether `value` is better than `than` by more than `delta`; NaN never is."""
    if math.isnan(value):
        return False
    return value < than - delta if mode == "min" else value > than + delta


def best(directory: str) -> tuple[Commit, Mark] | None:
    """Returns the best marked checkpoint that is whole, or None."""
    for mark in read(directory):
        try:
            return commits.verify(os.path.join(directory, commits.step_name(mark.step))), mark
        except commits.NotWhole:
            continue
    return None
