"""`--wait`: says what each task does until the run has ended, and ends as the run does."""

from __future__ import annotations

import time
from collections.abc import Callable

from components.reach import Unreachable
from pipelines.run import StepFailed
from pipelines.submit.platform import FINAL, Platform, Run, State
from trainer.errors import CastellError

POLL_SECONDS = 10.0
# A platform that does not answer so many times in a row is given up.
PATIENCE = 6


class NoQuota(StepFailed):
    """A step failed since the platform has nothing to run it on."""


class RunEnded(CastellError):
    """A run that ended badly without a failed step: cancelled, or refused as a whole."""


def follow(
    platform: Platform, run_id: str, say: Callable[[str], None], *, seconds: float = POLL_SECONDS
) -> None:
    """Returns when the run has succeeded; says each change of a task's state.

    Raises:
      StepFailed: a step failed; holds the first one's error and the exit code that it means
        (NoQuota: it was never run).
      RunEnded: the run was cancelled, or failed as a whole.
    """
    seen: dict[str, State] = {}
    misses = 0
    while True:
        try:
            run, misses = platform.run(run_id), 0
        except Unreachable:
            misses += 1
            if misses == PATIENCE:
                raise
            time.sleep(seconds)
            continue
        for task in run.tasks:
            if seen.get(task.name) != task.state:
                seen[task.name] = task.state
                say(f"▸ {task.name}: {task.state}")
        if run.state in FINAL:
            return conclude(run)
        time.sleep(seconds)


def conclude(run: Run) -> None:
    """Returns if a run that has ended has succeeded, else raises as `follow` does."""
    if run.state == "succeeded":
        return
    for task in run.tasks:
        if task.state == "failed":
            kind = NoQuota if task.no_quota else StepFailed
            raise kind(task.name, task.error or run.error or "no error is given; see its logs")
    raise RunEnded(f"run {run.id} {run.state}" + (f": {run.error}" if run.error else ""))
