"""Output that nobody can read any more must not end a run: a full disk, a closed pipe or terminal.

What is printed of a training is news; its result is files. So a line that cannot be written is lost
and the run goes on.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any, Literal, TextIO, cast

# A stream that was closed raises ValueError.
_UNWRITABLE = (OSError, ValueError)
_NUMBERS = {"stdout": 1, "stderr": 2}


class Tolerant:
    """A text stream whose `write` and `flush` lose what cannot be written; else the wrapped one."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Writes `text` if that is possible; returns its length either way."""
        try:
            return self._stream.write(text)
        except _UNWRITABLE:
            return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Writes each of `lines` as `write` does."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Hands on what was written if that is possible."""
        try:
            self._stream.flush()
        except _UNWRITABLE:
            return


def tolerate(*names: Literal["stdout", "stderr"]) -> None:
    """Makes these streams of `sys` tolerant for the rest of the process; opens one that is closed.

    They stay so, since Python flushes them once more when it ends and calls a failure exit code
    120. Twice is as good as once.
    """
    for name in names:
        stream = getattr(sys, name)
        if stream is None:
            stream = _nowhere(_NUMBERS[name])
        if not isinstance(stream, Tolerant):
            setattr(sys, name, cast(TextIO, Tolerant(stream)))


def _nowhere(number: int) -> TextIO:
    """Opens /dev/null, as descriptor `number` too if that is free.

    The next file that is opened would get the number, and native libraries would print into it.
    """
    try:
        os.fstat(number)
    except OSError:
        opened = os.open(os.devnull, os.O_WRONLY)
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)
        os.set_inheritable(number, True)
    return open(os.devnull, "w")
