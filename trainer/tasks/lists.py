"""Options that are lists: "256,128" from a flag, a list from YAML, or one value alone."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field


def _listed(value: Any) -> Any:
    if isinstance(value, str):
        return [part.strip() for part in value.strip("[]()").split(",") if part.strip()]
    return [value] if isinstance(value, int) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_listed)]
NamesOrAll = Annotated[tuple[str, ...] | None, BeforeValidator(_listed)]
Counts = Annotated[tuple[Annotated[int, Field(gt=0)], ...], BeforeValidator(_listed)]
