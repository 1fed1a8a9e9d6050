"""What is made in the cluster: a Job with an index, a name for its pods, and who may speak to them.

Plain mappings, as the API takes them. The names follow from the output, so that a second try of the
same step finds what the first one made.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from components.train_model.kubernetes.options import JobOptions
from trainer import errors

LABEL = "castell.dev/job"
# What the Job was made from: another content is another Job.
CONTENT = "castell.dev/content"
CONTAINER = "trainer"
GRPC_PORT = 2222
# With a port of its own choice the lifeline would be cut by the network policy.
LIFELINE_PORT = 2223
_USER = 1000


@dataclass(frozen=True)
class Owner:
    """What a thing goes with: the Job with the pod that its step runs in, the rest with the Job."""

    api: str
    kind: str
    name: str
    uid: str

    def reference(self) -> list[dict[str, str]]:
        """Returns `ownerReferences`."""
        return [{"apiVersion": self.api, "kind": self.kind, "name": self.name, "uid": self.uid}]


@dataclass(frozen=True)
class Plan:
    """One training in pods.

    data, output: URIs that every pod can read or write. config: keys of the trainer and the Task.
    env, resources, volumes, …: parts of the pod's specification, as Kubernetes spells them.
    """

    image: str
    data: str
    output: str
    task: str
    workers: int
    config: Mapping[str, Any]
    options: JobOptions
    owner: Owner | None = None
    env: Sequence[Mapping[str, Any]] = ()
    resources: Mapping[str, Any] = field(default_factory=dict)
    tolerations: Sequence[Mapping[str, Any]] = ()
    node_selector: Mapping[str, str] = field(default_factory=dict)
    affinity: Mapping[str, Any] = field(default_factory=dict)
    volumes: Sequence[Mapping[str, Any]] = ()
    volume_mounts: Sequence[Mapping[str, Any]] = ()

    @property
    def name(self) -> str:
        """The name of everything that is made; a DNS label."""
        return "castell-" + hashlib.sha256(self.output.encode()).hexdigest()[:12]

    @property
    def hosts(self) -> tuple[str, ...]:
        """The workers' addresses, by index."""
        return tuple(f"{self.name}-{i}.{self.name}:{GRPC_PORT}" for i in range(self.workers))

    def service(self, owner: Owner | None = None) -> dict[str, Any]:
        """Returns the headless Service that gives the pods names."""
        ports = [("grpc", GRPC_PORT), ("lifeline", LIFELINE_PORT)]
        return {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": self._metadata(owner),
            "spec": {
                "clusterIP": "None",
                # Workers look each other up while they start.
                "publishNotReadyAddresses": True,
                "selector": {LABEL: self.name},
                "ports": [{"name": name, "port": port} for name, port in ports],
            },
        }

    def network_policy(self, owner: Owner | None = None) -> dict[str, Any]:
        """Returns the policy that lets the Job's own pods in, and nobody else."""
        own = {"matchLabels": {LABEL: self.name}}
        return {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": self._metadata(owner),
            "spec": {
                "podSelector": own,
                "policyTypes": ["Ingress"],
                "ingress": [
                    {
                        "from": [{"podSelector": own}],
                        "ports": [
                            {"protocol": "TCP", "port": port} for port in (GRPC_PORT, LIFELINE_PORT)
                        ],
                    }
                ],
            },
        }

    def job(self) -> dict[str, Any]:
        """Returns the Indexed Job."""
        spec = {
            "completionMode": "Indexed",
            "completions": self.workers,
            "parallelism": self.workers,
            # Each index by itself: with one budget for all, every pod of a gang that starts again
            # doubles the wait of the next start (10 s, then minutes).
            "backoffLimitPerIndex": self.options.backoff_limit,
            "maxFailedIndexes": 0,
            "activeDeadlineSeconds": self.options.active_deadline_seconds,
            "ttlSecondsAfterFinished": self.options.keep_seconds,
            "podFailurePolicy": {"rules": _failure_rules()},
            "template": {"metadata": {"labels": {LABEL: self.name}}, "spec": self._pod()},
        }
        content = hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:32]
        metadata = self._metadata(self.owner)
        metadata["annotations"] = {CONTENT: content}
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}

    def _metadata(self, owner: Owner | None) -> dict[str, Any]:
        metadata: dict[str, Any] = {"name": self.name, "labels": {LABEL: self.name}}
        return metadata | ({"ownerReferences": owner.reference()} if owner else {})

    def _pod(self) -> dict[str, Any]:
        return {
            "restartPolicy": "Never",
            "subdomain": self.name,
            "terminationGracePeriodSeconds": self.options.grace_seconds,
            "automountServiceAccountToken": False,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": _USER,
                "runAsGroup": _USER,
                "fsGroup": _USER,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "affinity": dict(self.affinity) or _apart(self.name),
            **({"tolerations": list(self.tolerations)} if self.tolerations else {}),
            **({"nodeSelector": dict(self.node_selector)} if self.node_selector else {}),
            "containers": [self._container()],
            "volumes": [
                {"name": "tmp", "emptyDir": {"sizeLimit": self.options.scratch}},
                *self.volumes,
            ],
        }

    def _container(self) -> dict[str, Any]:
        hosts = [{"name": "CASTELL_WORKER_HOSTS", "value": ",".join(self.hosts)}]
        return {
            "name": CONTAINER,
            "image": self.image,
            "imagePullPolicy": "IfNotPresent",
            # Named, since the image of the other steps has another way to begin.
            "command": ["tini", "--", "python", "-m", "trainer"],
            "args": [
                f"--data={self.data}",
                f"--output={self.output}",
                f"--task={self.task}",
                f"--lifeline-port={LIFELINE_PORT}",
                # Readable where the pod is described, and no file to mount.
                "--config=data:," + quote(json.dumps(dict(self.config)), safe=' {}[]":,'),
            ],
            "env": [*self.env, *(hosts if self.workers > 1 else [])],
            "ports": [
                {"name": "grpc", "containerPort": GRPC_PORT},
                {"name": "lifeline", "containerPort": LIFELINE_PORT},
            ],
            "resources": dict(self.resources),
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            },
            "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}, *self.volume_mounts],
        }


def _failure_rules() -> list[dict[str, Any]]:
    """Returns what a pod's end means for the Job; the first rule that fits counts."""

    def codes(action: str, *values: int) -> dict[str, Any]:
        return {
            "action": action,
            "onExitCodes": {
                "containerName": CONTAINER, "operator": "In", "values": sorted(values),
            },
        }  # fmt: skip

    disrupted = {"type": "DisruptionTarget", "status": "True"}
    return [
        # Trying again changes nothing.
        codes("FailJob", errors.EXIT_FAULT, errors.EXIT_USAGE, errors.EXIT_DIVERGED),
        # Before the codes, as a drained node ends its pods with 143.
        {"action": "Ignore", "onPodConditions": [disrupted]},
        # All start again and resume, as often as it takes.
        codes("Ignore", errors.EXIT_PEER_LOST, errors.EXIT_STOPPED),
    ]


def _apart(name: str) -> dict[str, Any]:
    """Returns the wish to stand on nodes of their own: one that dies then takes one worker."""
    return {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 100,
                    "podAffinityTerm": {
                        "topologyKey": "kubernetes.io/hostname",
                        "labelSelector": {"matchLabels": {LABEL: name}},
                    },
                }
            ]
        }
    }
