"""What a local run's steps are: processes of this environment, or containers of their image.

A runner makes kfp.local's, and knows how to stop what that has started. Their modules are imported
when they are chosen: containers need the `docker` package.
"""

from __future__ import annotations

import contextlib
import importlib
import signal
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from trainer.errors import Stopped

RUNNERS = ("subprocess", "docker")


class Runner(Protocol):
    """How the steps of one run are started and stopped."""

    def make(self) -> Any:
        """Returns the runner for `kfp.local.init`."""

    def stop(self) -> bool:
        """Tells the step that is running to end; returns whether there is one."""

    def close(self) -> None:
        """Ends whatever is left."""


def load(name: str, arguments: Mapping[str, Any], images: Iterable[str], workdir: Path) -> Runner:
    """Returns the runner `name`.

    Args:
      name: one of `RUNNERS`.
      arguments: the pipeline's; local paths among its sources must be seen by the steps.
      images: of the steps.
      workdir: absolute; where the run's directory will stand.

    Raises:
      UsageError: it cannot run here.
    """
    module: Any = importlib.import_module(f"pipelines.runners.{name}")
    runner: Runner = module.runner(arguments, images, workdir)
    return runner


@contextlib.contextmanager
def stops_passed_on(runner: Runner) -> Iterator[list[int]]:
    """Stops the step when this process is told to stop; yields the signals seen.

    Raises:
      Stopped: the signal came between two steps, and the next one has not begun.
    """
    seen: list[int] = []
    interruptible = True

    def pass_on(signum: int, frame: FrameType | None) -> None:
        seen.append(signum)
        if not runner.stop() and interruptible:
            raise KeyboardInterrupt  # between two steps: the next one must not begin

    before = {n: signal.signal(n, pass_on) for n in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield seen
    except KeyboardInterrupt:
        raise Stopped("told to stop between two steps") from None
    finally:
        interruptible = False
        runner.close()
        for signum, handler in before.items():
            signal.signal(signum, handler)
