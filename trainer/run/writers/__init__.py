"""Where the metrics of a run go: one small file a destination, and what a run uses by default."""

from __future__ import annotations

from collections.abc import Callable

from trainer.run.directory import RunDirectory
from trainer.run.writers.console import ConsoleWriter, Progress
from trainer.run.writers.interface import Writer
from trainer.run.writers.jsonl import JsonlWriter
from trainer.run.writers.multi import MultiWriter
from trainer.run.writers.tensorboard import TensorBoardWriter
from trainer.run.writers.tolerant import TolerantWriter

__all__ = ["Writer", "make_writers"]


def make_writers(
    output: str, *, start: int, total: int, say: Callable[[str], None] = print
) -> Writer:
    """Returns the writer of a run: metrics.jsonl, tensorboard/ and the console (stderr).

    Args:
      output: the run directory, which exists.
      start: the step that this process goes on from.
      total: the step at which the run ends.
      say: takes a line for people: that a disk is full, say, which ends no run here.

    Raises:
      OSError: metrics.jsonl cannot be written.
    """
    directory = RunDirectory(output)
    return MultiWriter(
        (
            TolerantWriter(
                JsonlWriter(directory.metrics, resume_step=start), directory.metrics, say
            ),
            TolerantWriter(TensorBoardWriter(directory.tensorboard), directory.tensorboard, say),
            ConsoleWriter(Progress(total, start)),
        )
    )
