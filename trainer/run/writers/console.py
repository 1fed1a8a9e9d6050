"""Progress for people: one refreshed line on a terminal, plain lines anywhere else."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Mapping
from typing import TextIO

from trainer.run.writers.interface import Writer

# Shares of the time that are worth a word in the training line.
_WORTH_SHOWING = 0.2
# What start-up and compiling may take.
_START_SECONDS = 60.0
_ERASE_LINE = "\r\x1b[K"


class Progress:
    """Says how far a counted job is and when it will be done.

        progress = Progress(total=500, start=0, stream=sys.stderr)
        progress.update(100, "loss 0.31")   # train  step 100/500  20%  loss 0.31  ETA 0:42
        progress.close()

    Args:
      total: the count at the end.
      start: the count that this process begins with (not 0 after a resume).
      stream: where to; a terminal gets one line that is refreshed.
      stage: the first word of a line.
      unit: what is counted.
      clock: seconds, monotonic.
    """

    def __init__(
        self,
        total: int,
        start: int = 0,
        stream: TextIO | None = None,
        *,
        stage: str = "train",
        unit: str = "step",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._total = total
        self._stream = stream if stream is not None else sys.stderr
        self._terminal = self._stream.isatty()
        self._stage = stage
        self._unit = unit
        self._clock = clock
        self._origin = (start, clock())
        self._warm = False
        self._open_line = False

    def update(self, count: int, details: str = "") -> None:
        """Shows `count` of the total, `details` and the time that is left."""
        share = min(1.0, count / self._total) if self._total else 1.0
        parts = [
            f"{self._stage}  {self._unit} {count}/{self._total}",
            f"{share:4.0%}",
            details,
            self._remaining(count),
        ]
        self._show("  ".join(part for part in parts if part))

    def note(self, line: str) -> None:
        """Prints a line that stays, above the progress."""
        self.close()
        self._stream.write(line + "\n")
        self._stream.flush()

    def close(self) -> None:
        """Leaves the last line standing."""
        if self._open_line:
            self._stream.write("\n")
            self._stream.flush()
            self._open_line = False

    def _remaining(self, count: int) -> str:
        first, since = self._origin
        now = self._clock()
        if count <= first or count >= self._total:
            return ""
        seconds = (now - since) / (count - first) * (self._total - count)
        if not self._warm:
            # The first interval holds start-up and compiling: later estimates leave it out, and
            # where that may be most of it, there is none yet.
            self._warm, self._origin = True, (count, now)
            if now - since < _START_SECONDS:
                return ""
        return f"ETA {_duration(seconds)}"

    def _show(self, line: str) -> None:
        if self._terminal:
            # A line that wraps could not be refreshed.
            line = line[: shutil.get_terminal_size().columns - 1]
            self._stream.write(_ERASE_LINE + line)
        else:
            self._stream.write(line + "\n")
        self._stream.flush()
        self._open_line = self._terminal


class ConsoleWriter(Writer):
    """Shows the training figures as progress, and those of other splits as lines that stay."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def write(self, step: int, split: str, values: Mapping[str, float]) -> None:
        """See `Writer`; of the training figures, loss, examples/s and what is amiss."""
        if split == "train":
            self._progress.update(step, _training_details(values))
        else:
            figures = "  ".join(f"{name} {value:.4g}" for name, value in values.items())
            self._progress.note(f"{split}  step {step}  {figures}")

    def flush(self) -> None:
        """See `Writer`: every line is visible already."""

    def close(self) -> None:
        """See `Writer`."""
        self._progress.close()


def _training_details(values: Mapping[str, float]) -> str:
    """Loss and speed, and what they suffer from, if it is much."""
    details = []
    if "loss" in values:
        details.append(f"loss {values['loss']:.4f}")
    details += [f"{n} {v:.4g}" for n, v in values.items() if n.startswith("loss/")]
    if "examples_per_second" in values:
        details.append(f"{_short(values['examples_per_second'])} examples/s")
    waited = values.get("input_wait_fraction", 0.0)
    if waited >= _WORTH_SHOWING:
        details.append(f"input wait {waited:.0%}")
    reduced = values.get("allreduce_seconds", 0.0) / (values.get("step_seconds") or 1.0)
    if reduced >= _WORTH_SHOWING:
        details.append(f"all-reduce {min(reduced, 1.0):.0%}")
    if values.get("skipped_steps"):
        details.append(f"{values['skipped_steps']:.0f} steps skipped")
    return "  ".join(details)


def _short(number: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
