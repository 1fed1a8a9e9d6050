"""What a training Job may take: the limits that the step keeps, not the trainer's own keys."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

_DAY_SECONDS = 86_400
_MEMORY = re.compile(r"([0-9]+(?:\.[0-9]+)?)(?:([KMGTPE])(i?))?")
# No Python starts in less; a number without a unit counts bytes.
_LEAST_BYTES = 64 << 20


def as_text(value: Any) -> Any:
    """Returns a number as text: YAML reads `cpu: 2` as one, and Kubernetes' own files hold such."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number else value


def _enough(value: str) -> str:
    found = _MEMORY.fullmatch(value)
    if found is None:
        raise ValueError("must be a number and a unit, such as 4Gi or 500Mi")
    base = 1024 if found[3] else 1000
    size = float(found[1]) * base ** (" KMGTPE".index(found[2]) if found[2] else 0)
    if size < _LEAST_BYTES:
        raise ValueError(f"is {size:.0f} bytes: give it a unit, such as 4Gi or 500Mi")
    return value


Memory = Annotated[str, BeforeValidator(as_text), AfterValidator(_enough)]


class JobOptions(BaseModel):
    """Limits and habits of one Job; `kfp` settings of castell.yaml hold the same keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    queue_timeout_seconds: int = Field(
        3600, ge=0, description="how long pods may wait for a place; 0: as long as it takes"
    )
    # Whatever a rule ignores may come again for ever: this is what ends it.
    active_deadline_seconds: int = Field(
        7 * _DAY_SECONDS, gt=0, description="the longest that a Job may live, restarts included"
    )
    # A lost peer, a stop and a disrupted node do not count, so this is for pods out of memory.
    backoff_limit: int = Field(3, ge=0, description="how often a failed pod is made again")
    # Time for the checkpoint before a stop.
    grace_seconds: int = Field(120, ge=0, description="time between SIGTERM and SIGKILL")
    # At the least as long as the step takes to see how it ended.
    keep_seconds: int = Field(
        _DAY_SECONDS, ge=60, description="how long a finished Job stays, to be looked at"
    )
    scratch: Memory = Field("10Gi", description="size of each worker's /tmp")
