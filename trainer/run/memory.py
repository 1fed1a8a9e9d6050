"""How much memory a process uses, of its host and of its devices."""

from __future__ import annotations

import os
import resource
import sys

_STATM = "/proc/self/statm"


def resident_bytes() -> int:
    """Returns the memory of this process that is in RAM now; where there is no /proc, its peak."""
    try:
        with open(_STATM, encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024  # kilobytes elsewhere


def memory_figures() -> dict[str, int]:
    """Returns {"rss_bytes"}, and of the fullest GPU {"device_bytes", "device_peak_bytes"}.

    The device's figures are those of TensorFlow's allocator. Call it after the strategy was built.
    """
    import tensorflow as tf

    figures = {"rss_bytes": resident_bytes()}
    infos = [
        tf.config.experimental.get_memory_info(f"GPU:{index}")
        for index in range(len(tf.config.list_logical_devices("GPU")))
    ]
    if infos:
        figures["device_bytes"] = max(int(info["current"]) for info in infos)
        figures["device_peak_bytes"] = max(int(info["peak"]) for info in infos)
    return figures
