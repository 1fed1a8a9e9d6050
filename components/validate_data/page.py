"""`validation.html`: one self-contained page; its text stands in validation.html.jinja.

Histograms are small SVGs drawn here in the page's own colours; they stretch with their card, while
all text is the page's, so that it is as readable on a phone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from components.validate_data.picture import BASELINE, Bins, ColumnPicture, Floats
from components.validate_data.rules import KINDS
from components.validate_data.validation import Finding, Validation
from components.validate_data.wording import percent, value

_HEIGHT = 100.0
# Beyond it a bin is cut, so that one that towers does not flatten the rest.
_HEADROOM = 1.05
# As many as the page's style has for splits.
_COLOURS = 6


def render(validation: Validation, columns: Sequence[ColumnPicture]) -> str:
    """Returns the page."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("components.validate_data", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["percent"] = percent
    environment.filters["figure"] = lambda number: f"{number:.4g}"
    series = list(validation.splits)
    page: str = environment.get_template("validation.html.jinja").render(
        v=validation,
        columns=columns,
        groups=_groups(validation.findings),
        series=[*series, BASELINE] if validation.baseline else series,
        colours={**{name: f"s{i % _COLOURS}" for i, name in enumerate(series)}, BASELINE: "base"},
        kinds=KINDS,
        histogram=histogram,
        axis=axis,
        widest=lambda words: max(max(s.values()) for _, s, _ in words.rows) or 1,
    )
    return page


def _groups(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Findings of one rule on one column stand together, whatever the split."""
    found: dict[tuple[str, str | None], list[Finding]] = {}
    for finding in findings:
        found.setdefault((finding.rule, finding.column), []).append(finding)
    return list(found.values())


def histogram(bins: Bins, colours: dict[str, str]) -> str:
    """Returns the shares as an <svg>: the first series filled, all as lines, a baseline dashed."""
    top = max(float(s.max(initial=0)) for s in bins.shares.values()) * _HEADROOM or 1.0
    steps = len(bins.edges) - 1
    paths = []
    for place, (series, shares) in enumerate(bins.shares.items()):
        path = _steps(shares / top)
        if place == 0:
            paths.append(f'<path class="fill {colours[series]}" d="{path} V{_HEIGHT:g} H0 Z"/>')
        paths.append(f'<path class="line {colours[series]}" d="{path}"/>')
    return (
        f'<svg class="histogram" viewBox="0 0 {steps} {_HEIGHT:g}" preserveAspectRatio="none" '
        f'role="img" aria-label="histogram">{"".join(paths)}</svg>'
    )


def _steps(heights: Floats) -> str:
    tops = np.round(_HEIGHT * (1 - heights), 2)
    return f"M0 {_HEIGHT:g} " + " ".join(f"V{y:g} H{x + 1}" for x, y in enumerate(tops.tolist()))


def axis(bins: Bins) -> list[str]:
    """Returns the values at the left end, the middle and the right end."""
    low, high = float(bins.edges[0]), float(bins.edges[-1])
    if bins.feature.dtype == "int64" and low % 1 == 0.5:  # whole numbers, each in its own bin
        low, high = low + 0.5, high - 0.5
    return [value(bins.feature, number) for number in (low, (low + high) / 2, high)]
