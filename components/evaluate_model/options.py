"""The settings of an evaluation, checked before anything is read."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from trainer.run.choice import Which


class EvaluateOptions(BaseModel):
    """One evaluation of a run on one split."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run: str = Field(description="run directory that `castell train` wrote")
    data: str = Field(description="dataset directory")
    split: str = Field("test", description="split to evaluate, whole")
    output: str = Field(description="evaluation directory to write; an older one is replaced")
    slices: tuple[str, ...] = Field((), description="columns to report on by value")
    thresholds: tuple[str, ...] = Field((), description="rules of the verdict, like 'auc>=0.7'")
    baseline: str | None = Field(None, description="another run, evaluated on the same rows")
    step: Which = Field(
        None, description="checkpoint: a step, best or newest; default: the best, if there is one"
    )
    # Large enough to keep a device busy, small enough for wide tables.
    batch: int = Field(
        4096, gt=0, description="rows a step over all replicas; no figure depends on it"
    )
    cpu_replicas: int = Field(1, gt=0, description="split the CPU into N devices; same figures")
