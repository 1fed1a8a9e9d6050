"""What Vertex AI refuses, told when the pipeline is compiled rather than after minutes in a queue.

Each rule is one that Google's pages on custom training state, or that TensorFlow has on TPUs.
"""

from __future__ import annotations

import re

from pipelines.targets.vertex.settings import WEEK_HOURS, VertexSettings
from trainer.errors import UsageError, suggestion

# Which accelerators a family of machines has; families that are not here take none.
GPUS = {
    "n1": ("NVIDIA_TESLA_T4", "NVIDIA_TESLA_P4", "NVIDIA_TESLA_P100", "NVIDIA_TESLA_V100"),
    "g2-standard": ("NVIDIA_L4",),
    "a2-highgpu": ("NVIDIA_TESLA_A100",),
    "a2-megagpu": ("NVIDIA_TESLA_A100",),
    "a2-ultragpu": ("NVIDIA_A100_80GB",),
    "a3-highgpu": ("NVIDIA_H100_80GB",),
    "a3-megagpu": ("NVIDIA_H100_MEGA_80GB",),
    "a3-ultragpu": ("NVIDIA_H200_141GB",),
    "a4-highgpu": ("NVIDIA_B200",),
}
QUEUED_GPUS = tuple(gpu for family, gpus in GPUS.items() if family != "n1" for gpu in gpus)
# Chips and shape of the TPU machines that have one host each.
TPU_SHAPES = {
    "ct5lp-hightpu-1t": "1x1",
    "ct5lp-hightpu-4t": "2x2",
    "ct5lp-hightpu-8t": "2x4",
}
TPU_WITHOUT_TENSORFLOW = {"ct6e": "v6e", "tpu7x": "v7x"}
MAX_LABELS = 64

_NETWORK = re.compile(r"projects/\d+/global/networks/[a-z]([-a-z0-9]*[a-z0-9])?")
_ATTACHMENT = re.compile(r"(projects/[^/]+/regions/[^/]+/networkAttachments/)?[a-z][-a-z0-9]*")
_KEY = re.compile(r"projects/[^/]+/locations/([^/]+)/keyRings/[^/]+/cryptoKeys/[^/]+")
_TENSORBOARD = re.compile(r"projects/[^/]+/locations/[^/]+/tensorboards/[^/]+")
_LABEL_KEY, _LABEL_VALUE = re.compile(r"[a-z][-_a-z0-9]{0,62}"), re.compile(r"[-_a-z0-9]{0,63}")
_ALIAS = re.compile(r"[a-z][a-zA-Z0-9-]{0,125}[a-zA-Z0-9]")


def check(settings: VertexSettings, workers: int) -> None:
    """Returns if Vertex may take these settings.

    Raises:
      UsageError: it would not; says which setting, its value and what to do.
    """
    _check_names(settings)
    _check_network(settings)
    _check_machine(settings, workers)
    _check_pools(settings, workers)
    _check_scheduling(settings)
    _check_model(settings)


def is_tpu(settings: VertexSettings) -> bool:
    """Whether the machine has TPU chips."""
    return settings.machine_type.startswith(("ct", "tpu", "cloud-tpu"))


def _refuse(condition: bool, complaint: str) -> None:
    if condition:
        raise UsageError(complaint)


def _check_names(s: VertexSettings) -> None:
    for name in ("pipeline_root", "base_output_directory"):
        value = getattr(s, name)
        _refuse(bool(value) and not value.startswith("gs://"), f"{name} ({value}): must be gs://…")
    if s.kms_key:
        key = _KEY.fullmatch(s.kms_key)
        if key is None:
            raise UsageError(
                f"kms_key ({s.kms_key}): must be "
                "projects/PROJECT/locations/REGION/keyRings/RING/cryptoKeys/KEY"
            )
        _refuse(
            key[1] != s.location,
            f"kms_key ({s.kms_key}): lies in {key[1]}, the runs in {s.location}; both must be one",
        )
    _refuse(
        len(s.labels) > MAX_LABELS, f"labels: {len(s.labels)} of them; at most {MAX_LABELS} may be"
    )
    for key_, value in s.labels.items():
        _refuse(
            not _LABEL_KEY.fullmatch(key_) or not _LABEL_VALUE.fullmatch(value),
            f"labels ({key_}: {value}): lower-case letters, digits, - and _ only, 63 at most",
        )


def _check_network(s: VertexSettings) -> None:
    _refuse(
        bool(s.network and s.psc_attachment),
        f"network ({s.network}) and psc_attachment ({s.psc_attachment}): Vertex takes one of them",
    )
    _refuse(
        bool(s.network) and not _NETWORK.fullmatch(s.network),
        f"network ({s.network}): must be projects/NUMBER/global/networks/NAME, with the number",
    )
    _refuse(
        bool(s.psc_attachment) and not _ATTACHMENT.fullmatch(s.psc_attachment),
        f"psc_attachment ({s.psc_attachment}): must be "
        "projects/PROJECT/regions/REGION/networkAttachments/NAME",
    )
    for name in ("reserved_ip_ranges", "nfs_mounts"):
        _refuse(bool(getattr(s, name)) and not s.network, f"{name}: needs network, a peered VPC")
    for mount in s.nfs_mounts:
        _refuse(not mount.path.startswith("/"), f"nfs_mounts: path ({mount.path}): must begin by /")


def _check_machine(s: VertexSettings, workers: int) -> None:
    if is_tpu(s):
        _check_tpu(s, workers)
        return
    _refuse(bool(s.tpu_topology), f"tpu_topology: {s.machine_type} has no TPU; leave it out")
    if not s.accelerator_type:
        return
    known = sorted({gpu for gpus in GPUS.values() for gpu in gpus})
    near = suggestion(s.accelerator_type, known)
    _refuse(
        s.accelerator_type not in known,
        f"accelerator_type ({s.accelerator_type}): unknown{near}; there are {', '.join(known)}",
    )
    family = next((f for f in GPUS if s.machine_type.startswith(f"{f}-")), "")
    takes = ", ".join(GPUS[family]) if family else "no accelerator"
    _refuse(
        s.accelerator_type not in GPUS.get(family, ()),
        f"accelerator_type ({s.accelerator_type}): machine_type {s.machine_type} takes {takes}",
    )
    built_in = re.fullmatch(r"a[234]-.*-(\d+)g", s.machine_type)
    if built_in and int(built_in[1]) != s.accelerator_count:
        raise UsageError(
            f"accelerator_count ({s.accelerator_count}): {s.machine_type} has {built_in[1]}"
        )


def _check_tpu(s: VertexSettings, workers: int) -> None:
    for family, version in TPU_WITHOUT_TENSORFLOW.items():
        _refuse(
            s.machine_type.startswith(family),
            f"machine_type ({s.machine_type}): TensorFlow does not run on TPU {version}; "
            f"take v5e: {', '.join(TPU_SHAPES)}",
        )
    _refuse(
        s.machine_type not in TPU_SHAPES,
        f"machine_type ({s.machine_type}): the TPU machines of one host and TensorFlow are "
        f"{', '.join(TPU_SHAPES)}",
    )
    shape = TPU_SHAPES[s.machine_type]
    _refuse(
        s.tpu_topology != shape,
        f"tpu_topology ({s.tpu_topology}): {s.machine_type} on one host is {shape}; training on "
        "TPUs of several hosts is not supported",
    )
    _refuse(bool(s.accelerator_type), f"accelerator_type: {s.machine_type} brings its TPU along")
    _refuse(
        workers > 1 or s.evaluator or s.reduction_servers > 0,
        f"machine_type ({s.machine_type}): a TPU trains with one worker, no evaluator and no "
        "reduction server",
    )


def _check_pools(s: VertexSettings, workers: int) -> None:
    _refuse(
        s.evaluator and workers < 2,
        "evaluator: needs at least 2 workers: an empty pool of workers would be dropped on the "
        "way, and the evaluator would become a worker",
    )
    _refuse(
        s.reduction_servers > 0 and not (s.accelerator_type and workers > 1),
        f"reduction_servers ({s.reduction_servers}): add gradients of GPUs of several workers; "
        "needs accelerator_type and at least 2 workers",
    )


def _check_scheduling(s: VertexSettings) -> None:
    _refuse(
        bool(s.persistent_resource) and s.strategy != "STANDARD",
        f"persistent_resource and strategy ({s.strategy}): its machines are there already; "
        "leave strategy out",
    )
    if s.strategy == "FLEX_START":
        _refuse(
            s.accelerator_type not in QUEUED_GPUS,
            f"strategy (FLEX_START): waits for {', '.join(QUEUED_GPUS)}, not for "
            f"{s.accelerator_type or 'a machine without one'}",
        )
        _refuse(
            s.evaluator or s.reduction_servers > 0,
            "strategy (FLEX_START): needs one machine for all pools; leave evaluator and "
            "reduction_servers out",
        )
        _refuse(
            s.timeout_hours > WEEK_HOURS,
            f"timeout_hours ({s.timeout_hours:g}): FLEX_START allows {WEEK_HOURS:g} at most",
        )
    if s.tensorboard:
        _refuse(
            not _TENSORBOARD.fullmatch(s.tensorboard),
            f"tensorboard ({s.tensorboard}): must be "
            "projects/PROJECT/locations/REGION/tensorboards/ID",
        )
        account = s.training_account or s.service_account
        _refuse(not account, "tensorboard: needs service_account or training_account")
        _refuse(not s.base_output_directory, "tensorboard: needs base_output_directory")


def _check_model(s: VertexSettings) -> None:
    _refuse(
        s.min_replicas > s.max_replicas,
        f"min_replicas ({s.min_replicas}): more than max_replicas ({s.max_replicas})",
    )
    for name in ("parent_model", "version_aliases", "endpoint"):
        _refuse(bool(getattr(s, name)) and not s.model, f"{name}: needs model, the model's name")
    for alias in s.version_aliases:
        _refuse(
            not _ALIAS.fullmatch(alias),
            f"version_aliases ({alias}): must begin with a small letter; letters, digits, - after",
        )
