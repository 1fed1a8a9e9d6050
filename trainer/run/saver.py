"""Checkpoints while training goes on: values are held for a moment, a thread writes them.

`save` costs the loop little: the values of the step are shared with the variables, and the next
update of each variable copies it once (`checkpoint.snapshot`). One thread writes, one checkpoint at
a time, in order; COMMIT comes last, so that a crash in the middle leaves nothing that counts. A
save that fails on a full disk or a store that is away costs that one checkpoint; only the last one
of a run must succeed.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from typing import Any

import tensorflow as tf

from trainer.run import checkpoint, commits, marks
from trainer.run.checkpoint import SaveFailed
from trainer.run.marks import Mark, Mode

# About a tenth of a core that training wants too.
_NICENESS = 10


class Saver:
    """Saves the variables of one run; the chief's, nothing here is a collective.

        saver = Saver(directory, variables, meta, keep=3, keep_best=1, background=True, say=print)
        saver.save(1000)                                # returns at once; step 1001 may begin
        saver.mark_best(1000, "auc", 0.93, "max")
        saver.finish()                                  # before the process says that it is done

    Call it from one thread, between steps. `stall_seconds` is the time that `save` has blocked it
    so far.

    Args:
      directory: the run's checkpoints; created at the first save.
      variables: name to tf.Variable (distributed or not), as `checkpoint.snapshot` takes them.
      meta: JSON values for COMMIT; `belonging.CONFIG` holds what the run is.
      keep: how many of the newest stay, at least 1.
      keep_best: how many of the best stay beside them; 0: `mark_best` does nothing.
      background: False: `save` returns when the checkpoint is written.
      say: takes a line for people; called from the writing thread too.
    """

    def __init__(
        self,
        directory: str,
        variables: Mapping[str, tf.Variable],
        meta: dict[str, Any],
        *,
        keep: int,
        keep_best: int,
        background: bool,
        say: Callable[[str], None],
    ) -> None:
        self.stall_seconds = 0.0
        self._directory = directory
        self._variables = variables
        self._meta = meta
        self._keep = keep
        self._keep_best = keep_best
        self._say = say
        self._pool = (
            ThreadPoolExecutor(1, "checkpoint", initializer=_give_way) if background else None
        )
        self._work: list[Future[None]] = []
        self._asked: int | None = None
        # Text, not the exception, whose traceback would hold all the values.
        self._failure: str | None = None
        self._finishing = False

    def save(self, step: int) -> None:
        """Keeps a checkpoint of this moment, which is after `step` steps; once a step.

        Waits first while an earlier one is still being written. A failure is said in one line,
        and the next save tries again; `finish` raises if there is none.
        """
        began = time.perf_counter()
        self.wait()
        if self._asked != step or self._failure:
            self._asked = step
            values = checkpoint.snapshot(self._variables)
            self._do(lambda: self._write(step, values))
        self.stall_seconds += time.perf_counter() - began

    def mark_best(self, step: int, metric: str, value: float, mode: Mode) -> None:
        """Notes in best.json that `step`, which was saved, reached `value`; see `marks.ranked`.

        mode: whether a small or a large value is good. Nothing is noted of a save that failed.
        """
        if self._keep_best:
            self._do(lambda: self._mark(Mark(step, metric, value), mode))

    @property
    def busy(self) -> bool:
        """Whether something is being written."""
        return not all(future.done() for future in self._work)

    def wait(self, timeout_seconds: float | None = None) -> None:
        """Returns when nothing is being written any more, or after `timeout_seconds`."""
        done, running = wait_for(self._work, timeout_seconds)
        self._work = list(running)
        for future in done:
            future.result()  # raises what was a fault of ours

    def finish(self) -> None:
        """Waits for all that is being written.

        Raises:
          SaveFailed: the newest checkpoint that was asked for is not there.
        """
        self._finishing = True
        self.wait()
        if self._pool is not None:
            self._pool.shutdown()
        if self._failure:
            raise SaveFailed(self._failure)

    def _do(self, work: Callable[[], None]) -> None:
        if self._pool is None:
            work()
        else:
            self._work.append(self._pool.submit(work))

    def _write(self, step: int, values: Mapping[str, tf.Tensor]) -> None:
        try:
            checkpoint.write(self._directory, step, values, self._meta)
        except SaveFailed as error:
            self._failure = str(error)
            if not self._finishing:  # or it is the error that ends the run
                self._say(f"castell: warning: {error}; {self._left()}")
            return
        self._failure = None
        spared = [mark.step for mark in marks.read(self._directory)]
        commits.prune(self._directory, step, self._keep, spared)

    def _mark(self, mark: Mark, mode: Mode) -> None:
        if not os.path.exists(os.path.join(self._directory, commits.step_name(mark.step))):
            return
        known = marks.read(self._directory)
        try:
            marks.write(self._directory, marks.ranked(known, mark, mode, self._keep_best))
        except OSError as error:
            self._say(
                f"castell: warning: step {mark.step} could not be marked as the best in "
                f"{self._directory}: {error.strerror}; training goes on"
            )

    def _left(self) -> str:
        steps = commits.steps_in(self._directory)
        kept = f"step {steps[-1]} is still there" if steps else "there is no earlier one"
        return f"{kept}, training goes on and the next save tries again: free some space until then"


def _give_way() -> None:
    """Lets training have the cores first, where all of them train; Linux asks that of a thread."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
