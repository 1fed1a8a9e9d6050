"""The settings of a validation, checked before anything is read."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, model_validator


class ValidateOptions(BaseModel):
    """One validation of a dataset."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    data: str = Field(min_length=1, description="dataset directory")
    baseline: str | None = Field(None, description="dataset whose train split is the reference")
    run: str | None = Field(None, description="run whose training data is the reference")
    output: str | None = Field(
        None,
        description="directory of validation.json and validation.html; an older one is replaced",
    )
    rules: tuple[str, ...] = Field((), description="changes of rules, like 'missing<=0.1'")

    @model_validator(mode="after")
    def _one_reference(self) -> ValidateOptions:
        if self.baseline is not None and self.run is not None:
            raise ValueError("--baseline and --run cannot both be the reference: name one")
        return self
