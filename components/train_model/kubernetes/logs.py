"""The chief's lines, as they come, from one pod after another: a run goes on in new pods."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from components.train_model.kubernetes.cluster import Cluster

# What a log that has ended on the other side may still take to arrive.
_LAST_LINES_SECONDS = 10.0
# Between two looks at a log that has ended, or broken off.
_PAUSE_SECONDS = 5.0


class ChiefLog:
    """Passes the lines of the pods that it is told of to `say`, in a thread of its own."""

    def __init__(self, cluster: Cluster, say: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._say = say
        self._seen: set[str] = set()
        self._closed = threading.Event()
        self._wanted: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="chief-log", daemon=True)
        self._thread.start()

    def want(self, pod: str) -> None:
        """Takes a pod that has begun; one that is known already is no news."""
        if pod not in self._seen:
            self._seen.add(pod)
            self._wanted.put(pod)

    def close(self) -> None:
        """Returns when all lines are passed on, or after some seconds."""
        self._wanted.put(None)
        self._closed.set()
        self._thread.join(_LAST_LINES_SECONDS)

    def _work(self) -> None:
        while (pod := self._wanted.get()) is not None:
            self._pass_on(pod)

    def _pass_on(self, pod: str) -> None:
        """A stream breaks now and then: it is taken up again until the next pod is wanted."""
        seen = 0
        while True:
            for number, line in enumerate(self._cluster.log(pod), 1):
                if number > seen:
                    self._say(line)
                    seen = number
            if not self._wanted.empty() or self._closed.wait(_PAUSE_SECONDS):
                return
