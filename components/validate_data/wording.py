"""Numbers as a person reads them."""

from __future__ import annotations

import numpy as np

from trainer.data.manifest import Feature

_LONGEST = 40


def percent(share: float) -> str:
    """Returns 5.1 %, 0.02 %, <0.01 %, 0 %."""
    if not share:
        return "0 %"
    if 0 < share < 1e-4:
        return "<0.01 %"
    return f"{share:.2%}".replace("%", " %") if share < 0.01 else f"{share:.1%}".replace("%", " %")


def value(feature: Feature, number: float) -> str:
    """Returns a value of a numeric column; dates and times as such."""
    if feature.logical == "date":
        return str(np.datetime64(int(number), "D"))
    if feature.logical == "timestamp":
        return str(np.datetime64(int(number), "us").astype("datetime64[m]")).replace("T", " ")
    if feature.dtype == "int64" and abs(number) < 2**53:
        return f"{int(number):,}"
    size = abs(number)
    if size >= 1e7 or 0 < size < 1e-3:
        return f"{number:.3g}"
    return f"{number:,.0f}" if size >= 1000 else f"{number:.4g}"


def word(text: str) -> str:
    """Returns a category, cut where it is long."""
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
