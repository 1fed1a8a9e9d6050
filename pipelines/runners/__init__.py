"""What a local run's steps are: processes of this environment, or containers of their image.

A runner makes kfp.local's, and knows how to stop what that has started. Their modules are imported
when they are chosen: containers need the `docker` package.
"""

from __future__ import annotations

import contextlib
import importlib
import signal
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any, Protocol

RUNNERS = ("subprocess", "docker")


class Runner(Protocol):
    """How the steps of one run are started and stopped."""

    def make(self) -> Any:
        """Returns the runner for `kfp.local.init`."""

    def stop(self) -> bool:
        """Tells the step that is running to end; returns whether there is one."""

    def close(self) -> None:
        """Ends whatever is left."""


def load(name: str, arguments: Mapping[str, Any]) -> Runner:
    """Returns the runner `name`.

    Args:
      name: one of `RUNNERS`.
      arguments: the pipeline's; local paths among its sources must be seen by the steps.

    Raises:
      UsageError: it cannot run here.
    """
    module: Any = importlib.import_module(f"pipelines.runners.{name}")
    runner: Runner = module.runner(arguments)
    return runner


@contextlib.contextmanager
def stops_passed_on(runner: Runner) -> Iterator[list[int]]:
    """Stops the step when this process is told to stop; yields the signals seen.

    Between two steps it raises KeyboardInterrupt instead.
    """
    seen: list[int] = []

    def pass_on(signum: int, frame: FrameType | None) -> None:
        seen.append(signum)
        if not runner.stop():
            raise KeyboardInterrupt  # between two steps: the next one must not begin

    before = {n: signal.signal(n, pass_on) for n in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield seen
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
        runner.close()
