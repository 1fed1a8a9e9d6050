"""What goes wrong because a test orders it. (What goes wrong by itself stands in kubelet.py.)"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.doubles.kubernetes import pods
from tests.doubles.kubernetes.containers import unavailable
from tests.doubles.kubernetes.engine import Engine
from tests.doubles.kubernetes.status import Json
from tests.doubles.kubernetes.store import PODS, Store


@dataclass(frozen=True)
class Trouble:
    """For the pods of a Job; for one index, if that is given."""

    job: str
    index: int | None
    message: str

    def meets(self, pod: Json) -> bool:
        mine = pod["metadata"].get("labels", {}).get("batch.kubernetes.io/job-name") == self.job
        return mine and self.index in {None, pods.index_of(pod)}


@dataclass
class Ordered:
    """The standing orders; the kubelet asks here."""

    nodes: list[Trouble] = field(default_factory=list)
    images: list[Trouble] = field(default_factory=list)
    oom: set[str] = field(default_factory=set)

    def unschedulable(self, pod: Json) -> str:
        return next((trouble.message for trouble in self.nodes if trouble.meets(pod)), "")

    def image_missing(self, pod: Json) -> str:
        return next((trouble.message for trouble in self.images if trouble.meets(pod)), "")


class Faults:
    """Names of pods are those that `Cluster.pod` or the API gives; `namespace` is `default`."""

    def __init__(self, store: Store, engine: Engine, ordered: Ordered) -> None:
        self._store, self._engine, self._ordered = store, engine, ordered

    def unschedulable(
        self,
        job: str,
        index: int | None = None,
        message: str = unavailable("1 Insufficient memory"),
    ) -> None:
        """From now on no node takes the Job's new pods."""
        self._ordered.nodes.append(Trouble(job, index, message))

    def image_pull_back_off(
        self,
        job: str,
        index: int | None = None,
        message: str = "pull access denied, repository does not exist or may require authorization",
    ) -> None:
        """From now on the image can't be pulled for the Job's new pods."""
        self._ordered.images.append(Trouble(job, index, message))

    def lift(self) -> None:
        """Nodes and images are there again; pods that waited for them go on."""
        self._ordered.nodes.clear()
        self._ordered.images.clear()

    def kill(self, pod: str, signal: str = "KILL", namespace: str = "default") -> None:
        """The container's first process gets a signal."""
        self._engine.call("kill", f"--signal={signal}", self._engine.container(namespace, pod))

    def oom_kill(self, pod: str, namespace: str = "default") -> None:
        """As if the kernel had killed it for its memory limit: 137, OOMKilled."""
        self._ordered.oom.add(pod)
        self.kill(pod, namespace=namespace)

    def disrupt(
        self,
        pod: str,
        namespace: str = "default",
        *,
        grace_seconds: int | None = None,
        reason: str = "EvictionByEvictionAPI",
        message: str = "Eviction API: evicting",
    ) -> None:
        """The node is drained: DisruptionTarget, SIGTERM, after the grace SIGKILL; the pod goes."""

        def target(thing: Json) -> None:
            pods.set_condition(thing, "DisruptionTarget", "True", reason, message)

        self._store.update(PODS, namespace, pod, target)
        pods.delete_pod(self._store, namespace, pod, grace_seconds)

    def disconnect(self, pod: str, namespace: str = "default") -> None:
        """The container's network is cut; it runs on."""
        network, container = self._network(pod, namespace)
        self._engine.call("network", "disconnect", "--force", network, container)

    def cut_streams(self) -> None:
        """Every watch and followed log ends, as they do when an API server restarts."""
        self._store.cut()

    def _network(self, pod: str, namespace: str) -> tuple[str, str]:
        return self._engine.network(namespace), self._engine.container(namespace, pod)
