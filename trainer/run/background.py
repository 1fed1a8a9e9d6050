"""A daemon thread that goes on until it is stopped: what the watchdog and the status share."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Background:
    """Runs `work` in a thread; `work` returns soon after `ended` is set."""

    def __init__(self, name: str, work: Callable[[], None]) -> None:
        self.ended = threading.Event()
        self._name = name
        self._work = work
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begins to work."""
        self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Sets `ended` and waits for the thread."""
        self.ended.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
