"""Options that are lists: "256,128" from a flag, a list from YAML, or one value alone; bounds."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field


def _listed(value: Any) -> Any:
    if isinstance(value, str):
        return [part.strip() for part in value.strip("[]()").split(",") if part.strip()]
    return [value] if isinstance(value, int) else value


# Two layers of this width are 17 GB of weights, which no replica trains.
WIDEST = 1 << 16
# Rows, words and values are counted in int64.
MOST_COUNTED = 1 << 62

Names = Annotated[tuple[str, ...], BeforeValidator(_listed)]
NamesOrAll = Annotated[tuple[str, ...] | None, BeforeValidator(_listed)]
Counts = Annotated[tuple[Annotated[int, Field(gt=0, le=WIDEST)], ...], BeforeValidator(_listed)]
