"""A pod's specification, said as arguments of `docker create`. Starts nothing.

What a container can't be given here ends in `Misfit`, whose words and reason the kubelet would use.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tests.doubles.kubernetes.status import Json

_MESSAGE_PATH = "/dev/termination-log"
_UNITS = {
    "": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "m": 1e-3,
}  # fmt: skip
_QUANTITY = re.compile(r"([0-9.]+)([A-Za-z]*)")
_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")


class Misfit(Exception):
    """Why a container can't be made: the reason of its waiting, and the words."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason, self.message = reason, message


@dataclass(frozen=True)
class Surroundings:
    """What the cluster has beside its objects.

    Attributes:
      volumes: Directory of this machine, by PersistentVolumeClaim.
      secrets: Values by key, by Secret. (`config_maps`: likewise.)
      env: Variables that every container gets on top.
      hosts: Names that every container resolves, to an address or to `gateway`: this machine.
      capacity: What each node has, as a pod's requests name it.
      node_labels: What each node is, as a nodeSelector names it.
    """

    volumes: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    config_maps: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    hosts: Mapping[str, str] = field(default_factory=dict)
    capacity: Mapping[str, str] = field(
        default_factory=lambda: {"cpu": "64", "memory": "256Gi", "ephemeral-storage": "1Ti"}
    )
    node_labels: Mapping[str, str] = field(
        default_factory=lambda: {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    )

    def without_a_node(self, pod: Json) -> str:
        """Why no node will ever do, in the scheduler's words; nothing if one does."""
        spec = pod["spec"]
        for volume in spec.get("volumes") or []:
            claim = volume.get("persistentVolumeClaim", {}).get("claimName")
            if claim and claim not in self.volumes:
                return unavailable(f'persistentvolumeclaim "{claim}" not found')
        resources = spec["containers"][0].get("resources") or {}
        # A limit is a request too, where there is none.
        wanted = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        for name, amount in wanted.items():
            if quantity(amount) > quantity(self.capacity.get(name, "0")):
                return unavailable(f"1 Insufficient {name}")
        if not (spec.get("nodeSelector") or {}).items() <= self.node_labels.items():
            return unavailable("1 node(s) didn't match Pod's node affinity/selector")
        return ""


def unavailable(why: str) -> str:
    """FailedScheduling, as the scheduler writes it."""
    return (
        f"0/1 nodes are available: {why}. preemption: 0/1 nodes are available: "
        "1 Preemption is not helpful for scheduling."
    )


def quantity(text: str) -> float:
    """`500m`, `2`, `4Gi` as a number."""
    found = _QUANTITY.fullmatch(str(text))
    assert found, text
    return float(found[1]) * _UNITS[found[2]]


def arguments(pod: Json, around: Surroundings, image_user: str, message_file: str) -> list[str]:
    """What follows the name, network and labels in `docker create`, the image and command included.

    Raises:
      Misfit: the kubelet wouldn't start it either, or this double can't.
    """
    container = pod["spec"]["containers"][0]
    env = dict(environment(pod, container, around))
    words = [
        *_rights(pod["spec"].get("securityContext") or {}, container, image_user),
        *_limits((container.get("resources") or {}).get("limits") or {}),
        *_mounts(pod, container, around),
        f"--volume={message_file}:{container.get('terminationMessagePath', _MESSAGE_PATH)}",
    ]
    for name, value in env.items():
        words += ["--env", f"{name}={value}"]
    if container.get("workingDir"):
        words.append(f"--workdir={container['workingDir']}")
    command = [expand(word, env) for word in container.get("command") or []]
    given = [expand(word, env) for word in container.get("args") or []]
    if command:
        words.append(f"--entrypoint={command[0]}")
    return [*words, container["image"], *command[1:], *given]


def environment(pod: Json, container: Json, around: Surroundings) -> Iterator[tuple[str, str]]:
    """Yields names and values, those that come later in force over those before."""
    known: dict[str, str] = dict(around.env)
    for source in container.get("envFrom") or []:
        prefix = source.get("prefix", "")
        known |= {prefix + name: value for name, value in _whole(source, around).items()}
    for variable in container.get("env") or []:
        origin = variable.get("valueFrom")
        value = _from(origin, pod, around) if origin else expand(variable.get("value", ""), known)
        if value is not None:
            known[variable["name"]] = value
    yield from known.items()


def expand(text: str, env: Mapping[str, str]) -> str:
    """`$(NAME)` becomes its value, if there is one; `$$` becomes `$`."""
    return _REFERENCE.sub(
        lambda found: "$" if found[0] == "$$" else env.get(found[1], found[0]), text
    )


def _from(origin: Json, pod: Json, around: Surroundings) -> str | None:
    if reference := origin.get("fieldRef"):
        return _of_pod(reference["fieldPath"], pod)
    for word, kind, shelf in (
        ("secretKeyRef", "secret", around.secrets),
        ("configMapKeyRef", "configmap", around.config_maps),
    ):  # fmt: skip
        if reference := origin.get(word):
            name, key = reference["name"], reference["key"]
            if key in shelf.get(name, {}):
                return shelf[name][key]
            if reference.get("optional"):
                return None
            missing = (
                f"couldn't find key {key} in {kind} {name}"
                if name in shelf
                else f'{kind} "{name}" not found'
            )
            raise Misfit("CreateContainerConfigError", missing)
    raise Misfit("CreateContainerConfigError", f"this double gives no variable from {list(origin)}")


def _whole(source: Json, around: Surroundings) -> Mapping[str, str]:
    for word, kind, shelf in (
        ("secretRef", "secret", around.secrets), ("configMapRef", "configmap", around.config_maps),
    ):  # fmt: skip
        if reference := source.get(word):
            owner = reference["name"]
            if owner in shelf or reference.get("optional"):
                return shelf.get(owner, {})
            raise Misfit("CreateContainerConfigError", f'{kind} "{owner}" not found')
    return {}


def _of_pod(path: str, pod: Json) -> str:
    """The downward API."""
    meta = pod["metadata"]
    if found := re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path):
        value: str = (meta.get(found[1]) or {}).get(found[2], "")
        return value
    simple = {
        "metadata.name": meta["name"], "metadata.namespace": meta["namespace"],
        "metadata.uid": meta["uid"], "spec.nodeName": pod["spec"]["nodeName"],
        "spec.serviceAccountName": pod["spec"].get("serviceAccountName", "default"),
    }  # fmt: skip
    if path not in simple:
        # Docker gives a container its address when it starts, and its environment before that.
        raise Misfit("CreateContainerConfigError", f"this double knows no {path} before the start")
    return str(simple[path])


def _rights(of_pod: Json, container: Json, image_user: str) -> Iterator[str]:
    context = {**of_pod, **(container.get("securityContext") or {})}
    user = str(context.get("runAsUser", image_user))
    if context.get("runAsNonRoot") and user.split(":", maxsplit=1)[0] in {"", "0", "root"}:
        raise Misfit(
            "CreateContainerConfigError", "container has runAsNonRoot and image will run as root"
        )
    if "runAsUser" in context:
        # Without a group the kubelet takes the root group.
        yield f"--user={user}:{context.get('runAsGroup', 0)}"
    if "fsGroup" in context:
        yield f"--group-add={context['fsGroup']}"
    if context.get("readOnlyRootFilesystem"):
        yield "--read-only"
    if context.get("allowPrivilegeEscalation") is False:
        yield "--security-opt=no-new-privileges"
    for flag, names in (context.get("capabilities") or {}).items():
        yield from (f"--cap-{flag}={name}" for name in names)


def _limits(limits: Mapping[str, str]) -> Iterator[str]:
    if "memory" in limits:
        memory = int(quantity(limits["memory"]))
        yield from (f"--memory={memory}", f"--memory-swap={memory}")
    if "cpu" in limits:
        yield f"--cpus={quantity(limits['cpu'])}"


def _mounts(pod: Json, container: Json, around: Surroundings) -> Iterator[str]:
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or []}
    for mount in container.get("volumeMounts") or []:
        volume, path = volumes[mount["name"]], mount["mountPath"]
        end = "ro" if mount.get("readOnly") else "rw"
        below = f"/{mount['subPath']}" if mount.get("subPath") else ""
        if "emptyDir" in volume and not below:
            limit = (volume["emptyDir"] or {}).get("sizeLimit")
            size = f",size={int(quantity(limit))}" if limit else ""
            yield f"--tmpfs={path}:{end},exec,mode=1777{size}"
        elif claim := volume.get("persistentVolumeClaim", {}).get("claimName"):
            yield f"--volume={around.volumes[claim]}{below}:{path}:{end}"
        elif "hostPath" in volume:
            yield f"--volume={volume['hostPath']['path']}{below}:{path}:{end}"
        else:
            kinds = sorted(volume.keys() - {"name"})
            raise Misfit("CreateContainerConfigError", f"this double mounts no {kinds}{below}")
