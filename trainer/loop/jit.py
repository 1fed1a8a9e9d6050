"""`jit: auto`: does XLA make this step faster on this machine? A short trial says so.

Compiling a whole call doubles the speed of small dense models and halves that of convolutions on
CPUs, so nothing but a trial helps. Every variable is put back afterwards: what is trained does not
depend on the trial. The choice is kept in the checkpoints, since compiled arithmetic rounds
differently.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from trainer.loop.step import CannotCompile, TrainStep

# Compiling takes as long as hundreds of small steps: a shorter run does not get it back.
WORTH_A_TRIAL_STEPS = 1000
_TIMED_CALLS = 3
_MOST_STEPS_A_CALL = 20


@dataclass(frozen=True)
class Choice:
    """compiled: whether XLA compiles. reason: in words, for the log and the checkpoint."""

    compiled: bool
    reason: str


def settle(
    step: TrainStep,
    wanted: str,
    *,
    whole: bool,
    before: bool | None,
    left: int,
    trial: Callable[[], Choice],
) -> Choice:
    """Decides whether XLA compiles `step`, and makes it so.

    Args:
      step: made with `jit` as `wanted` says.
      wanted: the configuration's `jit`.
      whole: whether all of a call can be compiled: one replica, and no TPU, which always compiles.
      before: what a run that resumes had decided.
      left: steps that are still to be trained.
      trial: `choose`, which takes some seconds.
    """
    if wanted != "auto":
        return Choice(step.compiled, "as asked for")
    if not whole:
        return Choice(False, "XLA is tried only where one CPU or GPU trains alone")
    if before is not None:
        step.compiled = before
        return Choice(before, "as before the resumption")
    if left < WORTH_A_TRIAL_STEPS:
        return Choice(False, f"{left} steps are too few for a trial")
    return trial()


def choose(step: TrainStep, batches: Any, steps: int, variables: Mapping[str, Any]) -> Choice:
    """Times both ways on the first batches and leaves `step` set to the faster.

    Args:
      step: of one replica.
      batches: a super-batch as `TrainStep` takes it, of `steps` steps.
      steps: how many it holds.
      variables: all that a step changes; they are as before when this returns.
    """
    kept = {name: tf.identity(tf.convert_to_tensor(v)) for name, v in variables.items()}
    count = min(steps, _MOST_STEPS_A_CALL)
    try:
        seconds = {compiled: _time(step, compiled, batches, count) for compiled in (False, True)}
        ratio = seconds[False] / seconds[True]
        choice = Choice(ratio > 1, f"measured: XLA is {ratio:.2f} times as fast")
    except CannotCompile as error:
        choice = Choice(False, f"XLA cannot compile this step ({error.reason})")
    finally:
        for name, variable in variables.items():
            variable.assign(kept[name])
    step.compiled = choice.compiled
    return choice


def _time(step: TrainStep, compiled: bool, batches: Any, count: int) -> float:
    """Returns the seconds of the fastest call; the one that traces and compiles does not count."""
    step.compiled = compiled
    best = float("inf")
    for call in range(_TIMED_CALLS + 1):
        began = time.perf_counter()
        outcome = step(batches, first=0, count=count, step=0, nonfinite_run=tf.constant(0))
        float(outcome.gradient_norm)  # waits for the device
        if call:
            best = min(best, time.perf_counter() - began)
    return best
