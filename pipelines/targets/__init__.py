"""Where a pipeline runs. Only the training step differs between targets.

A target is one module with `place(training)`: it gives the training task what its platform needs.
Training is still one replica on `kfp` and `vertex`; launching several comes in there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pipelines.targets import kfp, local, vertex

TARGETS: dict[str, Callable[[Any], None]] = {
    "local": local.place,
    "kfp": kfp.place,
    "vertex": vertex.place,
}
