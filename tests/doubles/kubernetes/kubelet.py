"""The kubelet of all nodes: gives each pod its life (life.py), stops it, removes what is left."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.doubles.kubernetes import pods
from tests.doubles.kubernetes.containers import Surroundings
from tests.doubles.kubernetes.engine import Engine, EngineError
from tests.doubles.kubernetes.faults import Ordered
from tests.doubles.kubernetes.life import Life, Means
from tests.doubles.kubernetes.status import Json
from tests.doubles.kubernetes.store import PODS, Store
from tests.doubles.kubernetes.timing import Timing


class Kubelet:
    def __init__(
        self, store: Store, engine: Engine, around: Surroundings, timing: Timing, ordered: Ordered
    ) -> None:
        self.store, self.engine = store, engine
        self._messages = tempfile.TemporaryDirectory(prefix="castell-double-")
        messages = Path(self._messages.name)
        self._started: dict[str, str] = {}
        self._means = Means(store, engine, around, timing, ordered, messages, self._started)
        self._lives: dict[str, threading.Thread] = {}
        self._stopping: set[str] = set()

    def look(self) -> None:
        """Gives new pods their life, and has those that are deleted stopped or removed."""
        standing = {pod["metadata"]["uid"]: pod for pod in self.store.list(PODS)}
        for uid, pod in standing.items():
            if uid not in self._lives and not pod["spec"].get("nodeName"):
                self._lives[uid] = self._thread(Life(self._means, pod).run)
            elif pods.is_deleting(pod) and uid in self._started and uid not in self._stopping:
                self._stopping.add(uid)
                self._thread(partial(self._stop, pod))
        for uid in [uid for uid in list(self._started) if uid not in standing]:
            self.engine.remove(self._started.pop(uid))

    def close(self) -> None:
        """After the engine is cleared, so that no life waits for a container."""
        for thread in self._lives.values():
            thread.join(timeout=10)
        self._messages.cleanup()

    def _stop(self, pod: Json) -> None:
        grace = pod["metadata"].get("deletionGracePeriodSeconds", 0)
        container = self._started[pod["metadata"]["uid"]]
        name = pod["spec"]["containers"][0]["name"]
        self.store.tell(pod, "Normal", "Killing", f"Stopping container {name}", "kubelet")
        try:
            self.engine.call("stop", "--time", str(grace), container, seconds=grace + 60)
        except EngineError:
            return  # It was over before, and is removed.

    def _thread(self, work: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        return thread
