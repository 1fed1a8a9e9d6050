"""The double as a whole: an address for a Kubernetes client, and pods that are Docker containers.

    with Cluster(volumes={"data": "/tmp/data"}) as cluster:
        batch = client.BatchV1Api(client.ApiClient(client.Configuration(host=cluster.address)))
        batch.create_namespaced_job("default", job)
        pod = cluster.running("flights", 1)     # waits for worker 1
        cluster.faults.kill(pod)                # exit code 137; the Job's controller does the rest

One Docker network is one namespace. Everything that was started is removed at the end, also after a
failure. What Kubernetes does and this does not is refused with 501, or stands here: NetworkPolicies
are kept and never enforced; a pod is Ready when it runs (no probes, no hooks), and keeps its name;
an image that is on this machine needs no pull; requests are held against one node's size, not added
up; affinities, tolerations, quotas and priorities decide nothing; no service account comes into a
pod.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self, TypeVar

from tests.doubles.kubernetes import garbage, pods
from tests.doubles.kubernetes.api import Api
from tests.doubles.kubernetes.containers import Surroundings
from tests.doubles.kubernetes.engine import Engine, answers
from tests.doubles.kubernetes.faults import Faults, Ordered
from tests.doubles.kubernetes.jobs import JobController
from tests.doubles.kubernetes.kubelet import Kubelet
from tests.doubles.kubernetes.server import Server
from tests.doubles.kubernetes.status import Json
from tests.doubles.kubernetes.store import JOBS, PODS, Store
from tests.doubles.kubernetes.timing import QUICK, Timing

T = TypeVar("T")


class Cluster:
    """See `Surroundings` for what a cluster is made of, and `Timing` for its seconds.

    Attributes:
      address: For `client.Configuration(host=…)`.
      faults: What a test lets go wrong.
      denied: (verb, resource) that are answered with 403 from now on; a set to change at will.
      requests: (method, path with query) of all that was asked so far.
    """

    def __init__(
        self,
        *,
        timing: Timing = QUICK,
        deny: Iterable[tuple[str, str]] = (),
        **surroundings: Mapping[str, Any],
    ) -> None:
        self.timing, self.denied = timing, set(deny)
        self.store, self.engine, ordered = Store(), Engine(), Ordered()
        around = Surroundings(**surroundings)
        self.faults = Faults(self.store, self.engine, ordered)
        self._jobs = JobController(self.store, timing)
        self._kubelet = Kubelet(self.store, self.engine, around, timing, ordered)
        self._loop = threading.Thread(target=self._control)

    def __enter__(self) -> Self:
        self._trouble: list[BaseException] = []
        assert answers(), "no Docker engine answers"
        with contextlib.ExitStack() as stack:
            # Twice: a pod that was just being made can come up after the first.
            stack.callback(self.engine.clear)
            stack.callback(self._kubelet.close)
            stack.callback(self.engine.clear)
            self._server = Server(Api(self.store, self.denied), self.engine)
            stack.callback(self._server.close)
            self._loop.start()
            stack.callback(self._loop.join)
            stack.callback(self.store.close)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()
        if self._trouble:
            raise self._trouble[0]

    @property
    def address(self) -> str:
        return self._server.address

    @property
    def requests(self) -> list[tuple[str, str]]:
        return self._server.requests

    def gateway(self, namespace: str = "default") -> str:
        """Where a pod reaches a server of this machine that listens on all addresses."""
        return self.engine.gateway(namespace)

    def add_pod(self, name: str, namespace: str = "default") -> Json:
        """A pod that runs elsewhere, such as the pipeline step's own: it can own a Job, and go."""
        spec = {"nodeName": "elsewhere", "containers": [{"name": "main", "image": "elsewhere"}]}
        status = {"phase": "Running", "conditions": []}
        thing = {"metadata": {"name": name}, "spec": spec, "status": status}
        return self.store.create(PODS, namespace, thing)

    def remove_pod(self, name: str, namespace: str = "default") -> None:
        """The end of such a pod; what it owns goes with it."""
        garbage.delete(self.store, PODS, self.store.get(PODS, namespace, name), "Background", 0)

    def pods(self, job: str, index: int | None = None, namespace: str = "default") -> list[Json]:
        """A Job's pods, oldest first, those that are over included."""
        label = {"batch.kubernetes.io/job-name": job}.items()
        mine = self.store.list(
            PODS, namespace, lambda pod: label <= pod["metadata"].get("labels", {}).items()
        )
        mine = [pod for pod in mine if index in {None, pods.index_of(pod)}]
        return sorted(mine, key=lambda pod: int(pod["metadata"]["resourceVersion"]))

    def running(self, job: str, index: int, namespace: str = "default", seconds: float = 60) -> str:
        """Waits until the pod of an index runs, and returns its name."""

        def name() -> str:
            up = [p for p in self.pods(job, index, namespace) if p["status"]["phase"] == "Running"]
            return next((p["metadata"]["name"] for p in up if not pods.is_deleting(p)), "")

        return self.wait(name, seconds, f"pod {index} of {job} to run")

    def finished(self, job: str, namespace: str = "default", seconds: float = 60) -> str:
        """Waits for a Job's end: `Complete`, or the reason of its failure."""

        def end() -> str:
            conditions = self.store.get(JOBS, namespace, job)["status"].get("conditions", [])
            over = [
                c
                for c in conditions
                if c["type"] in {"Complete", "Failed"} and c["status"] == "True"
            ]
            return next(("Complete" if c["type"] == "Complete" else c["reason"] for c in over), "")

        return self.wait(end, seconds, f"Job {job} to end")

    def wait(self, until: Callable[[], T], seconds: float = 60, what: str = "it") -> T:
        """Waits for the first true value of `until` and returns it; asks at each change and tick.

        Raises:
          TimeoutError: with the state of all pods.
        """
        end = time.monotonic() + seconds
        while not (value := until()):
            if self._trouble or time.monotonic() > end:
                raise TimeoutError(f"waited {seconds:g} s for {what}; {self._summary()}")
            with self.store.changed:
                self.store.changed.wait(self.timing.tick)
        return value

    def _summary(self) -> str:
        return "; ".join(
            f"{pod['metadata']['name']}: {pod['status']['phase']}"
            + "".join(f" {s['state']}" for s in pod["status"].get("containerStatuses", []))
            for pod in self.store.list(PODS)
        )

    def _control(self) -> None:
        """The controllers, one after the other, at each change and each tick."""
        try:
            while not self.store.closed:
                version = self.store.version
                self._jobs.look()
                garbage.collect(self.store)
                self._kubelet.look()
                with self.store.changed:
                    if self.store.version == version and not self.store.closed:
                        self.store.changed.wait(self.timing.tick)
        except BaseException as error:
            self._trouble.append(error)
