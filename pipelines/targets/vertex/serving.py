"""What Vertex AI refuses of a model and its endpoint: told at once, not after the training."""

from __future__ import annotations

import re

from components.image import check_reference
from pipelines.targets.vertex import machines
from pipelines.targets.vertex.settings import VertexSettings
from trainer.errors import UsageError

# Of the names that people see.
LONGEST_NAME = 128
_ALIAS = re.compile(r"[a-z][a-zA-Z0-9-]{0,125}[a-zA-Z0-9]")
_MODEL = re.compile(
    r"(projects/[^/\s]+/locations/(?P<region>[^/\s]+)/models/)?[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
    r"(@[-a-zA-Z0-9]+)?"
)


def check_model(s: VertexSettings) -> None:
    """Checks the settings of registry and endpoint.

    Raises:
      UsageError: Vertex would refuse one; says which and what to do.
    """
    for name in ("parent_model", "version_aliases", "endpoint"):
        if getattr(s, name) and not s.model:
            raise UsageError(f"{name}: needs model, the model's name")
    for name in ("model", "endpoint"):
        value = getattr(s, name)
        if len(value) > LONGEST_NAME or not value.isprintable() or value != value.strip():
            raise UsageError(
                f"{name} ({value[:LONGEST_NAME]!r}): must be a name of {LONGEST_NAME} letters at "
                "most, in one line, without spaces around it"
            )
    for alias in s.version_aliases:
        if not _ALIAS.fullmatch(alias):
            raise UsageError(
                f"version_aliases ({alias}): must begin with a small letter; letters, digits, - "
                "after"
            )
    if s.parent_model:
        _check_parent(s)
    if s.model:
        check_reference(s.serving_image, "serving_image")
    _check_machines(s)


def _check_parent(s: VertexSettings) -> None:
    found = _MODEL.fullmatch(s.parent_model)
    if found is None:
        raise UsageError(
            f"parent_model ({s.parent_model}): must be a model's id, or "
            "projects/PROJECT/locations/REGION/models/ID"
        )
    if found["region"] not in (None, s.location):
        raise UsageError(
            f"parent_model ({s.parent_model}): lies in {found['region']}, the runs in {s.location}"
        )


def _check_machines(s: VertexSettings) -> None:
    if s.min_replicas > s.max_replicas:
        raise UsageError(
            f"min_replicas ({s.min_replicas}): more than max_replicas ({s.max_replicas})"
        )
    if machines.is_tpu(s.endpoint_machine_type):
        raise UsageError(
            f"endpoint_machine_type ({s.endpoint_machine_type}): serving on a TPU is not supported"
        )
    machines.check(
        "endpoint_",
        s.endpoint_machine_type,
        s.endpoint_accelerator_type,
        s.endpoint_accelerator_count,
    )
