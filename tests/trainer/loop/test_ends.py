"""How the loop ends early: all workers at one place, none before the chief has written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import tensorflow as tf

from trainer.config import TrainConfig
from trainer.data.rows import DamagedShard
from trainer.errors import CastellError, Stopped, UsageError
from trainer.loop.loop import Hooks, Loop
from trainer.loop.step import Outcome


def _damaged() -> Iterator[Any]:
    raise DamagedShard("shard 0 is damaged")
    yield


def _one_step(*args: Any, **named: Any) -> Outcome:
    zero = tf.constant(0.0)
    return Outcome(tf.constant([1.0]), tf.constant(1), tf.constant(0), tf.constant(1.0), zero, zero)


@pytest.mark.parametrize(
    ("stopped", "end", "calls"),
    [
        (True, Stopped, ["agree", "agree", "save", "finish", "agree"]),
        (False, UsageError, ["agree"] * 2),
    ],
)
def test_who_is_told_to_stop_waits_for_the_chiefs_checkpoint(
    stopped: bool, end: type[CastellError], calls: list[str]
) -> None:
    done: list[str] = []

    def agree(numbers: Sequence[int]) -> list[int]:
        done.append("agree")
        return list(numbers)

    hooks = Hooks(
        save=lambda step: done.append("save"),
        finish=lambda: done.append("finish"),
        write=lambda step, split, values: None,
        beat=lambda step: None,
        stop_requested=lambda: len(done) > 0,
        agree=agree,
    )
    config = TrainConfig(data="d", output="o", steps=9, steps_per_call=1)
    feed: Iterator[Any] = iter([(), (), ()]) if stopped else _damaged()
    step: Any = _one_step
    step.objectives = ("loss",)
    loop = Loop(step, tf.distribute.get_strategy(), [feed], config, hooks)
    with pytest.raises(end):
        loop.run(0)
    assert done == calls
