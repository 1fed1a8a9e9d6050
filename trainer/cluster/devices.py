"""What this process could compute on.

`find_devices` asks TensorFlow, which opens the GPU driver: a process that did so must not fork
workers that use GPUs. `glimpse_devices` only looks at the device files, for those who fork or who
must answer without importing TensorFlow.
"""

from __future__ import annotations

import glob
import importlib.util
import os
from collections.abc import Mapping
from dataclasses import dataclass

from trainer.cluster.resolve import tpu_variable


@dataclass(frozen=True)
class Devices:
    """gpus: how many this process sees. tpu: whether this host drives a TPU."""

    gpus: int = 0
    tpu: bool = False


def find_devices(environ: Mapping[str, str] = os.environ) -> Devices:
    """Returns the devices; lists GPUs through TensorFlow without starting its runtime."""
    import tensorflow as tf

    return Devices(len(tf.config.list_physical_devices("GPU")), has_tpu(environ))


def glimpse_devices(environ: Mapping[str, str] = os.environ) -> Devices:
    """Returns the devices without TensorFlow: right unless driver or CUDA libraries are broken."""
    return Devices(len(gpu_names(environ)), has_tpu(environ))


def gpu_names(environ: Mapping[str, str]) -> list[str]:
    """Returns what CUDA_VISIBLE_DEVICES would call the GPUs that this process may use."""
    present = sorted(glob.glob("/dev/nvidia[0-9]*"))
    if not present or "CUDA_VISIBLE_DEVICES" not in environ:
        return [str(index) for index in range(len(present))]
    names = [name.strip() for name in environ["CUDA_VISIBLE_DEVICES"].split(",")]
    # CUDA ignores an invalid entry, and all that follow it.
    end = next((i for i, name in enumerate(names) if not name or name.startswith("-")), len(names))
    return names[:end]


def has_tpu(environ: Mapping[str, str]) -> bool:
    """Returns whether this is a TPU host: its variables are set, or libtpu finds a chip's file.

    A TPU VM sets no variable for a plain process; /dev/vfio alone may be any passed-through device.
    """
    if tpu_variable(environ) or glob.glob("/dev/accel[0-9]*"):
        return True
    return bool(glob.glob("/dev/vfio/[0-9]*")) and importlib.util.find_spec("libtpu") is not None
