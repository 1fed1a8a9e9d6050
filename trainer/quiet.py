"""Importing TensorFlow without its greeting: lines about absl, CUDA and CPU features on stderr."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def quiet_start() -> Iterator[None]:
    """Holds back what native libraries print inside; shows it after all if an import fails.

    Wrap the first import of TensorFlow, which also takes a fifth less time in here. Set
    TF_CPP_MIN_LOG_LEVEL (0-3) to see everything.
    """
    # Hundreds of thousands of objects come to stay: the collector would look at them again and
    # again while they come, and ever after (and copy their pages in every fork).
    gc.disable()
    try:
        with _held_back():
            yield
    finally:
        gc.freeze()
        gc.enable()


@contextmanager
def _held_back() -> Iterator[None]:
    if "TF_CPP_MIN_LOG_LEVEL" in os.environ and os.environ["TF_CPP_MIN_LOG_LEVEL"] != "3":
        yield
        return
    # Errors reach Python as exceptions; what is logged beside is noise where there is no GPU.
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    sys.stderr.flush()
    with tempfile.TemporaryFile() as held:
        terminal = os.dup(2)
        os.dup2(held.fileno(), 2)
        try:
            yield
        except BaseException:
            os.dup2(terminal, 2)
            held.seek(0)
            with suppress(OSError):  # the import's failure is the news, not the terminal's
                os.write(2, held.read())
            raise
        finally:
            os.dup2(terminal, 2)
            os.close(terminal)
