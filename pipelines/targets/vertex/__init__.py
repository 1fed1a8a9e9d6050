"""Vertex AI Pipelines: the training step becomes a CustomJob with worker pools.

`settings` is what can be asked for, `limits` refuses what Vertex would, `pools` says which replicas
there are, `job` makes the component, `release` registers and deploys what was exported.

No kfp.kubernetes setting may stand in the YAML: it would make a second document, and Vertex refuses
that.
"""

from __future__ import annotations

from typing import Any

from pipelines.targets.vertex.settings import VertexSettings


def target(settings: VertexSettings, *, image: str, workers: int) -> Any:
    """Returns the target.

    Raises:
      UsageError: Vertex would refuse what the settings ask for.
    """
    from pipelines.targets.vertex.job import Vertex
    from pipelines.targets.vertex.limits import check

    check(settings, workers)
    return Vertex(settings, image, workers)
