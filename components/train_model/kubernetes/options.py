"""What a training Job may take: the limits that the step keeps, not the trainer's own keys."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

_DAY_SECONDS = 86_400


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
    scratch: str = Field("10Gi", description="size of each worker's /tmp")
