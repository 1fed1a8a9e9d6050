"""Where the metrics of a run go: one small file a destination, and what a run uses by default."""

from __future__ import annotations

from trainer.run.directory import RunDirectory
from trainer.run.writers.console import ConsoleWriter, Progress
from trainer.run.writers.interface import Writer
from trainer.run.writers.jsonl import JsonlWriter
from trainer.run.writers.multi import MultiWriter
from trainer.run.writers.tensorboard import TensorBoardWriter

__all__ = ["Writer", "make_writers"]


def make_writers(output: str, *, start: int, total: int) -> Writer:
    """Returns the writer of a run: metrics.jsonl, tensorboard/ and the console (stderr).

    Args:
      output: the run directory, which exists.
      start: the step that this process goes on from.
      total: the step at which the run ends.

    Raises:
      OSError: metrics.jsonl cannot be written.
    """
    directory = RunDirectory(output)
    return MultiWriter(
        (
            JsonlWriter(directory.metrics, resume_step=start),
            TensorBoardWriter(directory.tensorboard),
            ConsoleWriter(Progress(total, start)),
        )
    )
