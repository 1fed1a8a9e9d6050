"""Chooses the tf.distribute strategy, says why, and builds it.

`choose` is a pure function of cluster, devices and wish. What the user asked for wins over what
the cluster suggests; if both cannot hold it is an error, never a silent choice. `build` must run
before any other TensorFlow op: collectives are configured when the runtime starts.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any, Literal

from trainer.cluster.deadline import exit_unless_done
from trainer.cluster.devices import Devices
from trainer.cluster.spec import ClusterSpec
from trainer.errors import EXIT_PEER_LOST, PeerLost, UsageError

# The lifeline notices a silent worker first, and knows its name; TensorFlow's own heartbeats, late
# on a busy machine, are for clusters in which it could not be set up.
_AFTER_LIFELINE_SECONDS = 3.0

Name = Literal["one_device", "mirrored", "multi_worker", "tpu"]


@dataclass(frozen=True)
class Choice:
    """A strategy by name, and why.

    replicas: over all workers. local_replicas: in this process. Both are 0 for a TPU, whose cores
    are known only once it runs (`strategy.num_replicas_in_sync`). device: what replicas run on.
    """

    name: Name
    reason: str
    replicas: int
    local_replicas: int
    device: Literal["CPU", "GPU", "TPU"]


def choose(
    spec: ClusterSpec,
    requested: str = "auto",
    devices: Devices | None = None,
    cpu_replicas: int = 1,
) -> Choice:
    """Returns the strategy for this process.

    requested: auto, one_device, mirrored, multi_worker or tpu. cpu_replicas: > 1 splits the CPU
    into that many devices, GPUs or not.

    Raises:
      UsageError: the request contradicts the cluster or the devices.
    """
    devices = devices or Devices()
    together = spec.role != "evaluator" and spec.world_size > 1
    wants_tpu = requested == "tpu" or (
        requested == "auto" and devices.tpu and spec.role != "evaluator"
    )
    if wants_tpu:
        return _choose_tpu(spec, requested, devices, together)
    if together:
        return _choose_multi_worker(spec, requested, devices, cpu_replicas)
    return _choose_local(spec, requested, devices, cpu_replicas)


def _choose_tpu(spec: ClusterSpec, requested: str, devices: Devices, together: bool) -> Choice:
    if not devices.tpu:
        raise UsageError(
            "strategy (tpu): this machine has no TPU (no TPU_* variable, no TPU device file): run "
            "on a TPU host, or leave strategy at auto"
        )
    if together:
        raise UsageError(
            f"strategy (tpu): {spec.source} names {spec.world_size} workers, but TensorFlow drives "
            "the TPU of one host only: train with one worker, or ask for multi_worker to use CPUs"
        )
    reason = "asked for" if requested == "tpu" else "this host has a TPU"
    return Choice("tpu", reason, 0, 0, "TPU")


def _choose_multi_worker(
    spec: ClusterSpec, requested: str, devices: Devices, cpu_replicas: int
) -> Choice:
    size = spec.world_size
    if requested not in ("auto", "multi_worker"):
        raise UsageError(
            f"strategy ({requested}) is for one process, but {spec.source} names {size} workers: "
            "leave strategy at auto, or pass --alone to train without the others"
        )
    if cpu_replicas > 1:
        raise UsageError(
            f"cpu_replicas ({cpu_replicas}) with {size} workers: on CPUs each worker is one "
            "replica, raise the number of workers instead"
        )
    # Workers that this machine starts share its GPUs (see `fork`).
    gpus = devices.gpus // size if spec.starts_here else devices.gpus
    local = max(1, gpus)
    device: Literal["CPU", "GPU"] = "GPU" if gpus else "CPU"
    reason = f"{size} workers ({spec.source}) with {_count(local, device)} each"
    return Choice("multi_worker", reason, size * local, local, device)


def _choose_local(spec: ClusterSpec, requested: str, devices: Devices, cpu_replicas: int) -> Choice:
    evaluator = spec.role == "evaluator"
    if requested == "multi_worker" and not evaluator:
        if not spec.workers:
            raise UsageError(
                "strategy (multi_worker): no cluster is named: pass --workers N, set TF_CONFIG, or "
                "leave strategy at auto"
            )
        return _choose_multi_worker(spec, requested, devices, cpu_replicas)
    device: Literal["CPU", "GPU"] = "GPU" if devices.gpus and cpu_replicas == 1 else "CPU"
    local = devices.gpus if device == "GPU" else cpu_replicas
    if requested == "one_device" and cpu_replicas > 1:
        raise UsageError(
            f"strategy (one_device) contradicts cpu_replicas ({cpu_replicas}): drop one of them"
        )
    # The wish is for those who train together; an evaluator works with what its machine has.
    wish = "auto" if evaluator and requested in ("multi_worker", "tpu") else requested
    if wish == "one_device" or (wish == "auto" and local == 1):
        why = "asked for" if wish == "one_device" else f"one process ({spec.source}), one {device}"
        return Choice("one_device", _for_evaluator(evaluator, why), 1, 1, device)
    why = "asked for" if wish == "mirrored" else f"one process ({spec.source})"
    why = f"{why}: {_count(local, device)}"
    return Choice("mirrored", _for_evaluator(evaluator, why), local, local, device)


def _for_evaluator(evaluator: bool, why: str) -> str:
    return f"an evaluator works alone; {why}" if evaluator else why


def _count(number: int, device: str) -> str:
    return f"{number} {device}{'s' if number > 1 else ''}"


def build(
    choice: Choice,
    spec: ClusterSpec,
    *,
    heartbeat_timeout_seconds: float,
    collective_timeout_seconds: float,
    tpu_resolver: Any = None,
) -> Any:
    """Returns the tf.distribute.Strategy of `choice`; call it before any other TensorFlow op.

    heartbeat_timeout_seconds: silence after which a worker counts as lost; TensorFlow itself waits
    three seconds longer. collective_timeout_seconds: longest wait for the peers' TensorFlow servers
    to answer at the start. tpu_resolver: instead of the resolver of this host's TPU.

    Raises:
      UsageError: a TPU was chosen and does not answer, or spans several hosts.
      PeerLost: a worker vanished since the preflight. (Or the process leaves with 138 and one line
        when collective_timeout_seconds are over: Python cannot act while TensorFlow connects.)
    """
    _export_tf_config(choice, spec)
    if choice.name == "multi_worker":
        return _multi_worker(spec, heartbeat_timeout_seconds, collective_timeout_seconds)
    if choice.name == "mirrored":
        return _mirrored(choice)
    if choice.name == "tpu":
        return _tpu(tpu_resolver)
    import tensorflow as tf

    return tf.distribute.OneDeviceStrategy(f"/{choice.device}:0")


def _export_tf_config(choice: Choice, spec: ClusterSpec) -> None:
    """Makes TensorFlow see what was decided, not what the platform spelt."""
    if choice.name == "multi_worker":
        os.environ["TF_CONFIG"] = json.dumps(spec.tf_config())
    else:
        os.environ.pop("TF_CONFIG", None)


def _mirrored(choice: Choice) -> Any:
    import tensorflow as tf

    if choice.device == "CPU" and choice.replicas > 1:
        cpu = tf.config.list_physical_devices("CPU")[0]
        pieces = [tf.config.LogicalDeviceConfiguration() for _ in range(choice.replicas)]
        tf.config.set_logical_device_configuration(cpu, pieces)
    return tf.distribute.MirroredStrategy(
        [f"/{choice.device}:{index}" for index in range(choice.replicas)]
    )


def _multi_worker(
    spec: ClusterSpec, heartbeat_timeout_seconds: float, collective_timeout_seconds: float
) -> Any:
    import tensorflow as tf
    from tensorflow.python.eager import context

    # The strategy would configure the service itself, with a peer's silence noticed after 10 s and
    # a chief that never starts waited for an hour; there is no public way to say otherwise.
    context.context().configure_coordination_service(
        service_type="standalone",
        service_leader="/job:chief/replica:0/task:0",
        cluster_register_timeout_in_ms=round(collective_timeout_seconds * 1000),
        heartbeat_timeout_in_ms=round((heartbeat_timeout_seconds + _AFTER_LIFELINE_SECONDS) * 1000),
        coordinated_jobs=[
            context.coordination_config_pb2.CoordinatedJob(name=job, num_tasks=len(hosts))
            for job, hosts in spec.tf_config()["cluster"].items()
        ],
    )
    # No CommunicationOptions(timeout_seconds): for each all-reduce TensorFlow starts two threads
    # that sleep until it is over, and a run of some ten thousand quick steps dies of them. The
    # worker's watchdog ends a wait that is too long.
    peers = ", ".join(spec.name(rank) for rank in range(spec.world_size))
    late = f"the TensorFlow servers of {peers} did not find each other"
    try:
        # That timeout binds the workers only: the chief waits for them for ever.
        with exit_unless_done(collective_timeout_seconds, EXIT_PEER_LOST, f"error: {late}"):
            return tf.distribute.MultiWorkerMirroredStrategy()
    except (
        tf.errors.DeadlineExceededError,
        tf.errors.UnavailableError,
        tf.errors.AbortedError,
        tf.errors.UnknownError,  # the port was taken since the preflight
    ) as error:
        raise PeerLost(f"{late}: {_first_sentence(error)}") from None


def _first_sentence(error: Exception) -> str:
    return str(error).strip().split("\n")[0].split(". ")[0][:200]


def _tpu(resolver: Any) -> Any:
    import tensorflow as tf

    # Never TPUClusterResolver(""): that asks Google Cloud's metadata for a name.
    resolver = resolver or tf.distribute.cluster_resolver.TPUClusterResolver(tpu="local")
    hosts = sum(map(len, resolver.cluster_spec().as_dict().values()))
    if hosts > 1:
        raise UsageError(
            f"strategy (tpu): this TPU spans {hosts} hosts, but TensorFlow drives the chips of one "
            "host only: choose a slice with a single host"
        )
    try:
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
        return tf.distribute.TPUStrategy(resolver)
    except (tf.errors.OpError, RuntimeError, ValueError) as error:
        raise UsageError(
            f"strategy (tpu): no TPU answers on this machine ({_first_sentence(error)}): check "
            "that tensorflow-tpu and libtpu are there, and that no other process holds the chips"
        ) from None
