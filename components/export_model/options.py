"""The settings of an export, checked before anything is read."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, field_validator

from trainer.errors import suggestion
from trainer.run.choice import Which

FORMATS = ("saved_model",)


class ExportOptions(BaseModel):
    """One export of a run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run: str = Field(description="run directory that `castell train` wrote")
    output: str = Field(description="directory of the SavedModel; an older export is replaced")
    data: str | None = Field(
        None, description="dataset to compare outputs on; default: the one the run was trained on"
    )
    formats: tuple[str, ...] = Field(("saved_model",), min_length=1, description="what to write")
    step: Which = Field(
        None, description="checkpoint: a step, best or newest; default: the best, if there is one"
    )

    @field_validator("formats")
    @classmethod
    def _known(cls, formats: tuple[str, ...]) -> tuple[str, ...]:
        for name in formats:
            if name not in FORMATS:
                raise ValueError(
                    f"format {name!r} is not supported{suggestion(name, list(FORMATS))}: "
                    f"there is {', '.join(FORMATS)}"
                )
        return tuple(dict.fromkeys(formats))
