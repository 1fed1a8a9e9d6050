"""A run directory that another process fills: has it begun, what is new in it, has it ended.

Only the files speak: this process may be on another machine, whose clock is another. No TensorFlow
here.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from trainer.errors import PeerLost, Stopped
from trainer.run import commits
from trainer.run.commits import Commit, NotWhole
from trainer.run.damage import DAMAGED
from trainer.run.directory import RunDirectory

POLL_SECONDS = 0.5
# A platform restarts all tasks of a run that ends with one of these, the chief included.
_RETRYABLE = range(128, 256)


class RunWatch:
    """Follows a run from its beginning to its end.

    Args:
      output: the run directory; need not be there yet.
      patience_seconds: how long it may be silent: before it begins, between signs of life, and
        before an end is believed that may be of an attempt before this one.
      last_step: at which the run is complete, if that is known.
      stopped: asked between polls; True ends the watching.
      say: takes a line for people.
    """

    def __init__(
        self,
        output: str,
        *,
        patience_seconds: float,
        last_step: int | None,
        stopped: Callable[[], bool],
        say: Callable[[str], None],
    ) -> None:
        self.directory = RunDirectory(output)
        self.state = "unknown"
        self._patience_seconds = patience_seconds
        self._last_step = last_step
        self._stopped = stopped
        self._say = say
        self._damaged: dict[int, int] = {}
        self._first = self._seen = self._status().get("updated")
        self._since = time.monotonic()

    def wait_for_start(self) -> None:
        """Returns once the run has written what it is.

        Raises:
          UsageError: it cannot: there is a file in the way.
          PeerLost: it has not, and `patience_seconds` are over.
          Stopped: see `stopped`.
        """
        self.directory.entries()  # not there yet is well; a file in its place is not
        # The last of it, written by the chief when the model could be built.
        wanted = os.path.join(self.directory.dataset, "manifest.json")
        while not os.path.exists(wanted):
            if self._silent_seconds() > self._patience_seconds:
                raise PeerLost(
                    f"no run has begun in {self.directory.path} within "
                    f"{self._patience_seconds:g} s (startup_deadline_seconds): is the chief "
                    "running, with the same --output on a shared disk?"
                )
            self._pause()

    def commits(self, done: set[int]) -> Iterator[Commit]:
        """Yields each whole commit whose step is not in `done`, until the run has ended.

        The earliest of those there first; its step joins `done` when the next one is asked for.

        Raises:
          PeerLost: the run has not ended, and says nothing any more.
          Stopped: see `stopped`.
        """
        while True:
            ended = self._has_ended()  # asked before the look at the commits, so none is missed
            commit = self._next(done)
            if commit is not None:
                yield commit
                done.add(commit.step)
            elif ended:
                return
            else:
                self._pause()

    def _next(self, done: set[int]) -> Commit | None:
        """Returns the first new commit; one that is not finished, damaged or deleted is none."""
        for step in commits.steps_in(self.directory.checkpoints):
            path = os.path.join(self.directory.checkpoints, commits.step_name(step))
            written = _written(path)
            if step in done or written is None or self._damaged.get(step) == written:
                continue
            try:
                return commits.verify(path)
            except NotWhole as reason:
                if _written(path) == written:
                    self._damaged[step] = written
                    self._say(f"checkpoint {path} is skipped: {reason}")
        return None

    def _has_ended(self) -> bool:
        """Whether nothing more will come."""
        status, silent = self._status(), self._silent_seconds()
        self.state = str(status.get("state", "unknown"))
        if self.state in ("running", "unknown"):
            if silent > self._patience_seconds:
                raise PeerLost(
                    f"the chief has written nothing to {self.directory.status} for {silent:.0f} s: "
                    "it hangs or is gone"
                )
            return False
        step = status.get("step")
        if self._last_step is not None and isinstance(step, int) and step >= self._last_step:
            return True
        # What stands there may be of an attempt before this one, and an end that a platform
        # answers with a restart may not be the last.
        fresh = status.get("updated") != self._first
        final = fresh and status.get("exit_code") not in _RETRYABLE
        return final or silent > self._patience_seconds

    def _silent_seconds(self) -> float:
        """How long status.json has not changed."""
        updated = self._status().get("updated")
        if updated != self._seen:
            self._seen, self._since = updated, time.monotonic()
        return time.monotonic() - self._since

    def _status(self) -> Mapping[str, Any]:
        try:
            with open(self.directory.status, encoding="utf-8") as file:
                content = json.load(file)
        except DAMAGED:
            return {}
        return content if isinstance(content, dict) else {}

    def _pause(self) -> None:
        if self._stopped():
            raise Stopped("told to stop: what was evaluated is kept")
        time.sleep(POLL_SECONDS)


def _written(path: str) -> int | None:
    """When the commit was written, as a mark of its version; None if it is not (or no more)."""
    try:
        return os.stat(os.path.join(path, commits.COMMIT_NAME)).st_mtime_ns
    except OSError:
        return None
