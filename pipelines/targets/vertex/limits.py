"""What Vertex AI refuses, told when the pipeline is compiled rather than after minutes in a queue.

Each rule is one that Google's pages on custom training state, or that TensorFlow has on TPUs.
"""

from __future__ import annotations

import re

from components.image import check_reference
from pipelines.targets.vertex import machines
from pipelines.targets.vertex.machines import QUEUED_GPUS, is_tpu
from pipelines.targets.vertex.serving import check_model
from pipelines.targets.vertex.settings import MINUTE_HOURS, WEEK_HOURS, VertexSettings
from trainer.errors import UsageError

MAX_LABELS = 64

_BUCKET = re.compile(r"gs://[a-z0-9][-_.a-z0-9]*(/.*)?")
_NETWORK = re.compile(r"projects/\d+/global/networks/[a-z]([-a-z0-9]*[a-z0-9])?")
_ATTACHMENT = re.compile(
    r"(projects/[^/]+/regions/(?P<region>[^/]+)/networkAttachments/)?[a-z][-a-z0-9]*"
)
_KEY = re.compile(r"projects/[^/]+/locations/([^/]+)/keyRings/[^/]+/cryptoKeys/[^/]+")
_TENSORBOARD = re.compile(r"projects/[^/]+/locations/([^/]+)/tensorboards/[^/]+")
_LABEL_KEY, _LABEL_VALUE = re.compile(r"[a-z][-_a-z0-9]{0,62}"), re.compile(r"[-_a-z0-9]{0,63}")
_NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_FORMS = {
    "project": (re.compile(r"[a-z0-9][-.:a-z0-9]*"), "a project's id, such as my-project"),
    "location": (re.compile(r"[a-z]+-[a-z]+[0-9]+"), "a region, such as us-central1"),
    "pipeline_root": (_BUCKET, "gs://BUCKET/…"),
    "base_output_directory": (_BUCKET, "gs://BUCKET/…"),
    "network": (_NETWORK, "projects/NUMBER/global/networks/NAME, with the number"),
    "experiment": (re.compile(r"[a-z0-9][-a-z0-9]{0,127}"), "small letters, digits and -"),
    "persistent_resource": (_NAME, "small letters, digits and -, 63 at most"),
    **dict.fromkeys(
        ("service_account", "training_account", "serving_account"),
        (
            re.compile(r"[-.a-z0-9]+@[-.:a-z0-9]+\.gserviceaccount\.com"),
            "a service account's email, NAME@PROJECT.iam.gserviceaccount.com",
        ),
    ),
}


def check(settings: VertexSettings, workers: int) -> None:
    """Returns if Vertex may take these settings.

    Raises:
      UsageError: it would not; says which setting, its value and what to do.
    """
    check_place(settings)
    _check_network(settings)
    _check_machine(settings, workers)
    _check_pools(settings, workers)
    _check_scheduling(settings)
    check_model(settings)
    for number, fallback in enumerate(settings.fallbacks, 1):
        changes = fallback.model_dump(exclude_unset=True)
        try:
            _refuse(not changes, "says nothing else than the settings")
            check(settings.model_copy(update={**changes, "fallbacks": ()}), workers)
        except UsageError as error:
            raise UsageError(f"fallbacks, number {number}: {error}") from None


def _refuse(condition: bool, complaint: str) -> None:
    if condition:
        raise UsageError(complaint)


def check_place(s: VertexSettings) -> None:
    """Checks what says where a pipeline runs, and as whom; see `check`."""
    for name, (form, said) in _FORMS.items():
        value = getattr(s, name)
        needed = value or name == "location"
        _refuse(bool(needed) and not form.fullmatch(value), f"{name} ({value}): must be {said}")
    if s.kms_key:
        key = _KEY.fullmatch(s.kms_key)
        if key is None:
            raise UsageError(
                f"kms_key ({s.kms_key}): must be "
                "projects/PROJECT/locations/REGION/keyRings/RING/cryptoKeys/KEY"
            )
        _check_region(s, "kms_key", key[1])
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
    if s.psc_attachment:
        attachment = _ATTACHMENT.fullmatch(s.psc_attachment)
        if attachment is None:
            raise UsageError(
                f"psc_attachment ({s.psc_attachment}): must be "
                "projects/PROJECT/regions/REGION/networkAttachments/NAME"
            )
        _check_region(s, "psc_attachment", attachment["region"])
    for name in ("reserved_ip_ranges", "nfs_mounts"):
        _refuse(bool(getattr(s, name)) and not s.network, f"{name}: needs network, a peered VPC")
    for name in s.reserved_ip_ranges:
        _refuse(not _NAME.fullmatch(name), f"reserved_ip_ranges ({name}): no name of a range")
    for mount in s.nfs_mounts:
        _refuse(not mount.path.startswith("/"), f"nfs_mounts: path ({mount.path}): must begin by /")
        for name in ("server", "mount_point"):
            value = getattr(mount, name)
            wrong = not value or value.split() != [value] or "/" in value
            _refuse(wrong, f"nfs_mounts: {name} ({value}): must be a name, without / and spaces")


def _check_region(s: VertexSettings, name: str, region: str | None) -> None:
    _refuse(
        region not in (None, s.location),
        f"{name} ({getattr(s, name)}): lies in {region}, the runs in {s.location}; both must be "
        "one",
    )


def _check_machine(s: VertexSettings, workers: int) -> None:
    if not is_tpu(s.machine_type):
        _refuse(bool(s.tpu_topology), f"tpu_topology: {s.machine_type} has no TPU; leave it out")
        machines.check("", s.machine_type, s.accelerator_type, s.accelerator_count)
        return
    machines.check_tpu(s.machine_type, s.tpu_topology)
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
    if s.reduction_servers:
        machines.check("reduction_server_", s.reduction_server_machine_type)
        check_reference(s.reduction_server_image, "reduction_server_image")


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
    _refuse(
        0 < s.max_wait_hours < MINUTE_HOURS,
        f"max_wait_hours ({s.max_wait_hours:g}): must be a minute at least; 0 waits for ever",
    )
    if s.tensorboard:
        board = _TENSORBOARD.fullmatch(s.tensorboard)
        if board is None:
            raise UsageError(
                f"tensorboard ({s.tensorboard}): must be "
                "projects/PROJECT/locations/REGION/tensorboards/ID"
            )
        _check_region(s, "tensorboard", board[1])
        account = s.training_account or s.service_account
        _refuse(not account, "tensorboard: needs service_account or training_account")
        _refuse(not s.base_output_directory, "tensorboard: needs base_output_directory")
