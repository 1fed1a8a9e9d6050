"""Scheduler and kubelet, for one pod: how it becomes a container, and how that ends.

States, reasons and events are those of Kubernetes' scheduler and kubelet (pkg/kubelet/images,
pkg/kubelet/kuberuntime). Each pod has a node of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.doubles.kubernetes import pods
from tests.doubles.kubernetes.containers import Misfit, Surroundings, arguments
from tests.doubles.kubernetes.engine import LABEL, Engine, EngineError
from tests.doubles.kubernetes.faults import Ordered
from tests.doubles.kubernetes.selectors import selects
from tests.doubles.kubernetes.status import Json
from tests.doubles.kubernetes.store import PODS, SERVICES, Store, now
from tests.doubles.kubernetes.timing import Timing

# What the kubelet takes of a failed container's log, where a pod asks for it.
_LOG_LINES, _LOG_BYTES = 80, 2048
_SIGKILL_CODE = 137
_START_ERROR_CODE = 128


class Gone(Exception):
    """The pod is being deleted, or the double is at its end."""


@dataclass
class Means:
    """What all lives share. `messages`: a folder for last words; `started`: containers by uid."""

    store: Store
    engine: Engine
    around: Surroundings
    timing: Timing
    ordered: Ordered
    messages: Path
    started: dict[str, str]

    def message_file(self, uid: str) -> Path:
        """What a container writes there is its last word; any user may."""
        path = self.messages / uid
        path.touch()
        path.chmod(0o666)
        return path


class Life:
    """One pod's, from its node to its end."""

    def __init__(self, means: Means, pod: Json) -> None:
        self.means, self.store, self.engine = means, means.store, means.engine
        meta = pod["metadata"]
        self.namespace, self.name, self.uid = meta["namespace"], meta["name"], meta["uid"]
        self.spec = pod["spec"]["containers"][0]
        self.container = self.engine.container(self.namespace, self.name)
        self.user: str | None = None

    def run(self) -> None:
        try:
            self.find_node()
            self.wait("ContainerCreating")
            self.find_image()
            self.find_service()
            if self.start():
                self.engine.call("wait", self.container, seconds=None)
                self.end()
        except (Gone, EngineError):
            # An engine that fails after the start: the container was removed at the double's end.
            self.set(lambda pod: pod["status"].update(phase="Failed"))
        self.reap()

    def find_node(self) -> None:
        while True:
            pod = self.look()
            why = self.means.ordered.unschedulable(pod) or self.means.around.without_a_node(pod)
            if not why:
                break
            self.set(partial(hold_back, why=why))
            self.tell("Warning", "FailedScheduling", why, "default-scheduler")
            self.sleep(self.means.timing.tick)
        node = f"node-{self.uid[:8]}"

        def bind(pod: Json) -> None:
            pod["spec"]["nodeName"] = node
            pods.set_condition(pod, "PodScheduled", "True")
            pod["status"]["startTime"] = now()

        self.set(bind)
        words = f"Successfully assigned {self.namespace}/{self.name} to {node}"
        self.tell("Normal", "Scheduled", words, "default-scheduler")

    def find_image(self) -> None:
        image, rests = self.spec["image"], self.means.timing.pull_backoff
        while why := self.missing_image():
            reason, words = "ErrImagePull", f'Failed to pull image "{image}": {why}'
            if self.spec.get("imagePullPolicy") == "Never":
                reason = "ErrImageNeverPull"
                words = why = f'Container image "{image}" is not present with pull policy of Never'
            elif "invalid reference format" in why:
                reason = "InvalidImageName"
                words = why = f'Failed to apply default image tag "{image}": {why}'
            self.tell("Warning", "Failed", words)
            self.tell("Warning", "Failed", f"Error: {reason}")
            self.wait(reason, why)
            self.sleep(rests / 2)
            if reason == "ErrImagePull":
                words = f'Back-off pulling image "{image}"'
                self.tell("Normal", "BackOff", words)
                self.tell("Warning", "Failed", "Error: ImagePullBackOff")
                self.wait("ImagePullBackOff", f"{words}: ErrImagePull: {why}")
            self.sleep(rests / 2)
            rests = min(2 * rests, self.means.timing.pull_backoff_longest)
        self.tell("Normal", "Pulled", f'Container image "{image}" already present on machine')

    def missing_image(self) -> str:
        """Why an image can't be had; nothing if it is there: then it is taken as it is."""
        image = self.spec["image"]
        if ordered := self.means.ordered.image_missing(self.look()):
            return ordered
        self.user = self.engine.image_user(image)
        if self.user is not None:
            return ""
        if self.spec.get("imagePullPolicy") == "Never":
            return "not present"
        self.tell("Normal", "Pulling", f'Pulling image "{image}"')
        try:
            self.engine.call("pull", "--quiet", image, seconds=600)
            self.user = self.engine.image_user(image)
        except EngineError as error:
            return str(error)
        return ""

    def find_service(self) -> None:
        for _ in range(int(self.means.timing.service_wait / self.means.timing.tick)):
            pod = self.look()
            if not pod["spec"].get("subdomain") or self.aliases(pod):
                return
            self.sleep(self.means.timing.tick)

    def aliases(self, pod: Json) -> list[str]:
        """The pod's names, with which it is found under its headless Service."""
        host, below = pod["spec"].get("hostname"), pod["spec"].get("subdomain")
        service = self.store.find(SERVICES, self.namespace, below or "")
        if not (host and below and service and selects(service["spec"].get("selector") or {}, pod)):
            return []
        ends = [below, f"{below}.{self.namespace}", f"{below}.{self.namespace}.svc"]
        ends.append(f"{ends[-1]}.cluster.local")
        return [*(f"{host}.{end}" for end in ends), *ends]

    def start(self) -> bool:
        """Whether the container runs; if not, the pod is over."""
        while True:
            pod = self.look()
            try:
                self.create(pod)
                break
            except Misfit as misfit:
                self.wait(misfit.reason, misfit.message)
                self.tell("Warning", "Failed", f"Error: {misfit.message}")
            except EngineError as error:
                self.wait("CreateContainerError", str(error))
                self.tell("Warning", "Failed", f"Error: {error}")
            self.sleep(self.means.timing.pull_backoff)
        self.tell("Normal", "Created", f"Created container {self.spec['name']}")
        try:
            self.engine.call("start", self.container)
        except EngineError as error:
            self.means.started[self.uid] = self.container
            self.tell("Warning", "Failed", f"Error: {error}")
            self.close(_START_ERROR_CODE, "StartError", str(error), now(), now())
            return False
        # From here on, and not before, a deletion stops the container.
        self.means.started[self.uid] = self.container
        shape = self.engine.inspect(self.container)
        address = shape["NetworkSettings"]["Networks"][self.engine.network(self.namespace)][
            "IPAddress"
        ]
        self.tell("Normal", "Started", f"Started container {self.spec['name']}")

        def run(pod: Json) -> None:
            pod["status"].update(phase="Running", podIP=address, podIPs=[{"ip": address}])
            self.state(pod, {"running": {"startedAt": now()}}, ready=True)

        self.set(run)
        return True

    def create(self, pod: Json) -> None:
        around, network = self.means.around, self.engine.network(self.namespace)
        told = arguments(pod, around, self.user or "", str(self.means.message_file(self.uid)))
        words = [
            f"--name={self.container}", f"--label={LABEL}={self.engine.run_id}",
            f"--network={network}", f"--hostname={pod['spec'].get('hostname') or self.name}",
        ]  # fmt: skip
        words += [f"--network-alias={alias}" for alias in self.aliases(pod)]
        for name, address in around.hosts.items():
            place = self.engine.gateway(self.namespace) if address == "gateway" else address
            words.append(f"--add-host={name}:{place}")
        self.engine.call("create", *words, *told)

    def end(self) -> None:
        state = self.engine.inspect(self.container)["State"]
        code = state["ExitCode"]
        killed = state["OOMKilled"] or (
            self.name in self.means.ordered.oom and code == _SIGKILL_CODE
        )
        reason = "OOMKilled" if killed else "Error" if code else "Completed"
        self.close(code, reason, self.last_words(code), *(
            state[key].split(".")[0].rstrip("Z") + "Z" for key in ("StartedAt", "FinishedAt")
        ))  # fmt: skip

    def close(self, code: int, reason: str, message: str, began: str, ended: str) -> None:
        over = {"exitCode": code, "reason": reason, "startedAt": began, "finishedAt": ended}

        def finish(pod: Json) -> None:
            pod["status"]["phase"] = "Failed" if code else "Succeeded"
            state = {"terminated": {**over, **({"message": message} if message else {})}}
            self.state(pod, state, ready=False)

        self.set(finish)

    def last_words(self, code: int) -> str:
        """The termination message: from its file, else, if wanted, the end of a failed log."""
        written = self.means.message_file(self.uid).read_text(errors="replace")
        wants_log = self.spec.get("terminationMessagePolicy") == "FallbackToLogsOnError"
        if written or not (code and wants_log):
            return written
        log, _ = self.engine.follow(self.container, f"--tail={_LOG_LINES}").communicate()
        return log[-_LOG_BYTES:].decode(errors="replace")

    def wait(self, reason: str, message: str = "") -> None:
        state = {"waiting": {"reason": reason, **({"message": message} if message else {})}}
        self.set(lambda pod: self.state(pod, state, ready=False))

    def state(self, pod: Json, state: Json, *, ready: bool) -> None:
        pod["status"]["containerStatuses"] = [{
            "name": self.spec["name"], "image": self.spec["image"], "imageID": "",
            "ready": ready, "started": ready, "restartCount": 0, "state": state, "lastState": {},
        }]  # fmt: skip
        reason = {True: "PodCompleted", False: "ContainersNotReady"}["terminated" in state]
        pods.set_condition(pod, "Initialized", "True")
        for kind in ("Ready", "ContainersReady"):
            pods.set_condition(pod, kind, str(ready), "" if ready else reason)

    def look(self) -> Json:
        pod = self.store.find(PODS, self.namespace, self.name)
        if (
            self.store.closed
            or not pod
            or pod["metadata"]["uid"] != self.uid
            or pods.is_deleting(pod)
        ):
            raise Gone
        return pod

    def sleep(self, seconds: float) -> None:
        """Wakes up early for a deletion, or at the end."""

        def over() -> bool:
            pod = self.store.find(PODS, self.namespace, self.name)
            return self.store.closed or pod is None or pods.is_deleting(pod)

        with self.store.changed:
            self.store.changed.wait_for(over, seconds)
        self.look()

    def set(self, change: Callable[[Json], None]) -> None:
        self.store.update(PODS, self.namespace, self.name, change)

    def tell(self, level: str, reason: str, message: str, source: str = "kubelet") -> None:
        if pod := self.store.find(PODS, self.namespace, self.name):
            self.store.tell(pod, level, reason, message, source)

    def reap(self) -> None:
        """A deleted pod whose container is over may go, once the Job controller has counted it."""

        def free(pod: Json) -> None:
            if pods.is_deleting(pod):
                pod["metadata"]["deletionGracePeriodSeconds"] = 0

        self.set(free)


def hold_back(pod: Json, why: str) -> None:
    pods.set_condition(pod, "PodScheduled", "False", "Unschedulable", why)
