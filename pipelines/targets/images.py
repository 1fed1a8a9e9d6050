"""What is odd about an image for a target, said in a line each when a pipeline is compiled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

# How `make image` calls what it builds, and how the tags for accelerators end.
_OURS = ("castell", "castell-trainer")
_FOR_ACCELERATORS = ("gpu", "tpu")


def oddities(target: str, read: Any, image: str) -> Iterator[str]:
    """Yields a line for what will likely not work; `read` holds the target's settings."""
    if target == "local":
        return
    first, slash, _ = image.partition("/")
    if not slash or not (set(".:") & set(first) or first == "localhost"):
        unless = "" if target == "vertex" else "unless the nodes have it, "
        yield (
            f"image {image} names no registry: {unless}it is pulled from Docker Hub; name yours, "
            f"as --image registry.example/{image}"
        )
    name, _, tag = image.rpartition("/")[2].partition("@")[0].partition(":")
    wanted = _accelerator(target, read)
    if wanted and name in _OURS and tag and not tag.endswith(_FOR_ACCELERATORS):
        kind = "gpu" if "tpu" not in wanted.lower() else "tpu"
        yield (
            f"image {image} looks like the one for CPUs, and {wanted} is asked for: take "
            f"{image.partition('@')[0]}-{kind} (make image ACCELERATOR={kind})"
        )


def _accelerator(target: str, read: Any) -> str:
    if target == "kfp":
        return str(read.accelerator)
    return str(read.accelerator_type or ("a TPU" if read.tpu_topology else ""))
