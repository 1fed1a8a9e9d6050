"""Machines of Vertex AI: how they are called, which accelerators they take, and how many."""

from __future__ import annotations

import re
from collections.abc import Iterable

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
# How many a machine of the general family may have; the others have theirs built in.
_COUNTS: dict[str, tuple[int, ...]] = {"NVIDIA_TESLA_V100": (1, 2, 4, 8)}
_USUAL_COUNTS: tuple[int, ...] = (1, 2, 4)
_G2_COUNTS = {4: 1, 8: 1, 12: 1, 16: 1, 24: 2, 32: 1, 48: 4, 96: 8}
# Chips and shape of the TPU machines that have one host each.
TPU_SHAPES = {
    "ct5lp-hightpu-1t": "1x1",
    "ct5lp-hightpu-4t": "2x2",
    "ct5lp-hightpu-8t": "2x4",
}
TPU_WITHOUT_TENSORFLOW = {"ct6e": "v6e", "tpu7x": "v7x"}
_FORM = re.compile(r"[a-z][a-z0-9]*-[a-z]+-(?P<size>[0-9]+)[gt]?(-[a-z]+)?")


def is_tpu(machine: str) -> bool:
    """Whether the machine has TPU chips."""
    return machine.startswith(("ct", "tpu", "cloud-tpu"))


def check(prefix: str, machine: str, accelerator: str = "", count: int = 1) -> None:
    """Checks a machine without TPU and its accelerators.

    `prefix` is how the settings that name them begin: `endpoint_`, …

    Raises:
      UsageError: there is no such machine or accelerator, or it does not fit.
    """
    name = f"{prefix}machine_type"
    form = _FORM.fullmatch(machine)
    if form is None:
        raise UsageError(f"{name} ({machine}): no machine type such as n1-standard-8")
    is_g2 = machine.startswith("g2-standard-")
    sizes = sorted(_G2_COUNTS)
    if is_g2 and int(form["size"]) not in sizes:
        raise UsageError(f"{name} ({machine}): g2-standard has the sizes {_listed(sizes)}")
    if not accelerator:
        return
    known = sorted({gpu for gpus in GPUS.values() for gpu in gpus})
    if accelerator not in known:
        near = suggestion(accelerator, known)
        raise UsageError(
            f"{prefix}accelerator_type ({accelerator}): unknown{near}; there are {', '.join(known)}"
        )
    family = next((f for f in GPUS if machine.startswith(f"{f}-")), "")
    if accelerator not in GPUS.get(family, ()):
        takes = ", ".join(GPUS[family]) if family else "no accelerator"
        raise UsageError(
            f"{prefix}accelerator_type ({accelerator}): {name} {machine} takes {takes}"
        )
    allowed = _COUNTS.get(accelerator, _USUAL_COUNTS)
    if family != "n1":
        allowed = (_G2_COUNTS[int(form["size"])] if is_g2 else int(form["size"]),)
    if count not in allowed:
        has = "has" if len(allowed) == 1 else "may have"
        raise UsageError(f"{prefix}accelerator_count ({count}): {machine} {has} {_listed(allowed)}")


def check_tpu(machine: str, topology: str) -> None:
    """Checks a machine with a TPU.

    Raises:
      UsageError: TensorFlow does not run there, or it needs more than one host.
    """
    for family, version in TPU_WITHOUT_TENSORFLOW.items():
        if machine.startswith(family):
            raise UsageError(
                f"machine_type ({machine}): TensorFlow does not run on TPU {version}; "
                f"take v5e: {', '.join(TPU_SHAPES)}"
            )
    if machine not in TPU_SHAPES:
        raise UsageError(
            f"machine_type ({machine}): the TPU machines of one host and TensorFlow are "
            f"{', '.join(TPU_SHAPES)}"
        )
    if topology != TPU_SHAPES[machine]:
        raise UsageError(
            f"tpu_topology ({topology}): {machine} on one host is {TPU_SHAPES[machine]}; training "
            "on TPUs of several hosts is not supported"
        )


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))
