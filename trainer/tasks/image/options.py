"""The configuration keys of the image task."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from trainer.tasks.lists import Counts


def _number(value: Any) -> Any:
    """A flag brings text, which a Literal would not take for a number."""
    return int(value) if isinstance(value, str) and value.isdecimal() else value


_Channels = Annotated[Literal[1, 3], BeforeValidator(_number)]
_LONGEST_SIDE = 4096
# Deeper than any net of this kind that was of use.
_MOST_BLOCKS = 1000
_Side = Annotated[int, Field(gt=0, le=_LONGEST_SIDE)]
_Share = Annotated[float, Field(ge=0, lt=1)]


class ImageOptions(BaseModel):
    """Settings of the image task."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    image: str | None = Field(
        None,
        description="the column: encoded images or lists of pixel values; default: the only one",
    )
    size: _Side | None = Field(
        None,
        description="side to which images are resized; default: 64, of pixel lists their own size",
    )
    height: _Side | None = Field(None, description="of pixel lists; default: they are square")
    width: _Side | None = Field(None, description="of pixel lists; default: they are square")
    channels: _Channels | None = Field(
        None, description="1 (grey) or 3 (RGB); default: 3, of pixel lists what makes them square"
    )
    scaling: Literal["range", "standardized"] = Field(
        "range", description="range: to -1..1; standardized: each image to mean 0 and deviation 1"
    )
    widths: Counts = Field(
        (16, 32, 64), min_length=1, description="channels of each stage; each but the first halves"
    )
    stride: _Side = Field(1, description="of the first convolution; 2 or 4 for photos")
    blocks: int = Field(1, gt=0, le=_MOST_BLOCKS, description="residual blocks a stage")
    # MNIST: 95 % of the test images after 120 steps; with one cell a side 84 % after 200.
    grid: _Side = Field(
        4, description="cells a side that features are averaged over; 1: place is no matter"
    )
    # Statistics of one image: the same on any number of replicas and microbatches.
    norm: Literal["group", "batch"] = Field(
        "group", description="batch: synchronised, and another result with microbatches"
    )
    dropout: _Share = Field(0.0, description="rate before the last layer")
    crop: int = Field(
        2,
        ge=0,
        le=_LONGEST_SIDE,
        description="augmentation: shift by up to so many pixels, black comes in",
    )
    flip: bool = Field(False, description="augmentation: mirror left and right (not for digits)")
    brightness: _Share = Field(0.0, description="augmentation: add up to so much of the range")
    contrast: _Share = Field(0.0, description="augmentation: stretch or shrink by up to so much")

    @model_validator(mode="after")
    def _both(self) -> ImageOptions:
        if (self.height is None) != (self.width is None):
            raise ValueError("height and width belong together: say both, or neither")
        return self
