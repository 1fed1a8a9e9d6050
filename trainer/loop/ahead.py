"""Fetches the next super-batch while the device works on this one."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Any


class Ahead(Iterator[Any]):
    """Hands through what `source` yields, one element ahead, from a thread of its own.

    Taking a finished super-batch from tf.data costs the thread that asks a millisecond or two, a
    tenth of a call of a small model. The thread is a daemon: who leaves early waits for nothing.
    """

    def __init__(self, source: Iterator[Any]) -> None:
        self._source = source
        # Counts the elements that may be fetched: never two, which would hold more memory.
        self._wanted = threading.Semaphore(1)
        # (element, None) or (None, what ended the source).
        self._ready: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
        threading.Thread(target=self._fetch, name="castell-ahead", daemon=True).start()

    def __next__(self) -> Any:
        element, end = self._ready.get()
        if end is not None:
            # For whoever asks again.
            self._ready.put((None, end))
            raise end
        self._wanted.release()
        return element

    def _fetch(self) -> None:
        end = None
        while end is None:
            self._wanted.acquire()
            element = None
            try:
                element = next(self._source)
            except BaseException as error:
                end = error
            self._ready.put((element, end))
            # Not kept until the next one is wanted.
            del element
