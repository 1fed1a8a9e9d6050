"""The report's plots as inline SVG that follows the page's colours.

matplotlib draws with placeholder colours which become CSS variables afterwards, so one picture is
right on a light and on a dark page. Text stays text: it can be selected and takes the page's font.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from components.evaluate_model.evaluation import (
    CalibrationBin,
    PrecisionRecall,
    Roc,
    SliceFigures,
)
from components.evaluate_model.scored import Floats, Scored
from components.evaluate_model.slices import text

INK, MUTED, GRID = "#010101", "#020202", "#030303"
FIRST, SECOND = "#040404", "#050505"
_VARIABLES = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    GRID: "var(--grid)",
    FIRST: "var(--first)",
    SECOND: "var(--second)",
}
_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "castell",
    # A slice called "$x" is a name, not mathematics.
    "text.parse_math": False,
    "text.color": INK,
    "font.size": 10,
    "axes.edgecolor": GRID,
    "axes.labelcolor": MUTED,
    "axes.labelsize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": GRID,
    "ytick.color": GRID,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "lines.linewidth": 2,
    "lines.solid_capstyle": "round",
    "legend.frameon": False,
}
_SQUARE = (4.4, 3.9)
_WIDE = (9.2, 3.2)
_MOST_DOTS = 3000


def _draw(name: str, alt: str, size: tuple[float, float], paint: Callable[[Any], None]) -> str:
    """Returns one pair of axes as an <svg> element; `name` keeps its ids apart from others'."""
    with mpl.rc_context(_STYLE), warnings.catch_warnings():
        # Glyphs that matplotlib's font lacks are drawn by the browser's.
        warnings.filterwarnings("ignore", message="Glyph")
        figure = Figure(figsize=size, layout="constrained")
        paint(figure.subplots())
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    svg = out.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = re.sub(r'\b(id="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    svg = re.sub(r"font: ([\d.]+px) [^;\"]+", r"font-size: \1", svg)
    for placeholder, variable in _VARIABLES.items():
        svg = svg.replace(placeholder, variable)
    # As wide as its card, never wider than drawn: the view box keeps the proportions.
    svg = re.sub(r'^<svg([^>]*?) width="[^"]*"([^>]*?) height="[^"]*"', r"<svg\1\2", svg)
    opening = f'<svg role="img" aria-label="{alt}" style="max-width: {round(size[0] * 96)}px" '
    return svg.replace("<svg ", opening, 1)


def roc(curve: Roc) -> str:
    """True against false positive rate."""

    def paint(axes: Any) -> None:
        axes.plot([0, 1], [0, 1], color=MUTED, linewidth=1, linestyle=(0, (3, 3)))
        axes.plot(curve.fpr, curve.tpr, color=FIRST)
        _unit_square(axes, "false positive rate", "true positive rate")

    return _draw("roc", "ROC curve", _SQUARE, paint)


def precision_recall(curve: PrecisionRecall, base_rate: float) -> str:
    """Precision over recall, with the base rate that a guess would have."""

    def paint(axes: Any) -> None:
        axes.axhline(base_rate, color=MUTED, linewidth=1, linestyle=(0, (3, 3)))
        axes.plot(curve.recall, curve.precision, color=FIRST)
        axes.text(
            0.02,
            base_rate + (0.02 if base_rate < 0.5 else -0.06),
            f"base rate {base_rate:.3f}",
            color=MUTED,
            fontsize=9,
        )
        _unit_square(axes, "recall", "precision")

    return _draw("pr", "precision-recall curve", _SQUARE, paint)


def calibration(bins: Sequence[CalibrationBin]) -> str:
    """How often it came true over the score, a dot a bin, its area the bin's rows."""

    def paint(axes: Any) -> None:
        sizes = _areas([b.rows for b in bins])
        axes.plot([0, 1], [0, 1], color=MUTED, linewidth=1, linestyle=(0, (3, 3)))
        scores, rates = [b.score for b in bins], [b.rate for b in bins]
        axes.plot(scores, rates, color=FIRST, linewidth=1.2)
        axes.scatter(scores, rates, s=sizes, color=FIRST, zorder=3)
        _unit_square(axes, "mean score", "share that came true")

    return _draw("calibration", "calibration plot", _SQUARE, paint)


def score_histogram(rows: Scored, classes: Sequence[str]) -> str:
    """The scores of the two classes, each as shares of its own rows."""

    def paint(axes: Any) -> None:
        edges = np.linspace(0, 1, 41)
        for value, colour, name in ((0, FIRST, classes[0]), (1, SECOND, classes[1])):
            chosen = rows.label == value
            if not rows.weight[chosen].sum():
                continue
            counts, _ = np.histogram(rows.output[chosen], edges, weights=rows.weight[chosen])
            share = counts / counts.sum()
            axes.stairs(share, edges, color=colour, fill=True, alpha=0.28)
            axes.stairs(share, edges, color=colour, linewidth=1.5, label=name)
        axes.set_xlim(0, 1)
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(mpl.ticker.PercentFormatter(1, decimals=0))
        axes.set_xlabel("score")
        axes.set_ylabel("share of the class")
        axes.legend(labelcolor=INK, loc="upper center", ncols=2)

    return _draw("scores", "histogram of scores by class", _SQUARE, paint)


def slice_dots(
    column: str,
    parts: Sequence[SliceFigures],
    metric: str,
    whole: float | None,
    *,
    lower_is_better: bool,
) -> str:
    """One metric by slice, best value on top, each dot's area its rows; a line for the whole."""
    named = [(p.metrics[metric], text(p.slice[column]), p.rows) for p in parts]
    known = sorted(
        ((value, name, rows) for value, name, rows in named if value is not None),
        reverse=lower_is_better,
    )
    height = 0.9 + 0.27 * max(len(known), 2)

    def paint(axes: Any) -> None:
        values = [item[0] for item in known]
        places = np.arange(len(known))
        if whole is not None:
            axes.axvline(whole, color=MUTED, linewidth=1, linestyle=(0, (3, 3)))
        axes.scatter(values, places, s=_areas([item[2] for item in known]), color=FIRST, zorder=3)
        axes.set_yticks(places, [_short(item[1]) for item in known], color=INK)
        right = axes.secondary_yaxis("right")
        right.set_yticks(places, [f"{item[2]:,}" for item in known])
        right.spines["right"].set_visible(False)
        right.tick_params(length=0, labelcolor=MUTED, labelsize=9)
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(-0.7, max(len(known), 2) - 0.3)
        axes.margins(x=0.08)
        axes.set_xlabel(f"{metric} (dashed: whole split; right: rows)")

    return _draw(f"slice-{_identifier(column)}", f"{metric} by slice", (9.2, height), paint)


def predicted_and_actual(rows: Scored) -> str:
    """Predicted over actual value; the diagonal is a perfect model."""

    def paint(axes: Any) -> None:
        both = np.concatenate([rows.label, rows.output])
        ends = [both.min(), both.max()]
        _cloud(axes, rows.label, rows.output)
        axes.plot(ends, ends, color=MUTED, linewidth=1, linestyle=(0, (3, 3)))
        axes.set_xlabel("actual")
        axes.set_ylabel("predicted")

    return _draw("actual", "predicted over actual values", _SQUARE, paint)


def residuals(rows: Scored) -> str:
    """Histogram of prediction minus label, its outermost 0.5 % on each side left out."""

    def paint(axes: Any) -> None:
        residual = rows.output - rows.label
        low, high = np.quantile(residual, [0.005, 0.995])
        edges = np.linspace(low, high if high > low else low + 1, 51)
        counts, _ = np.histogram(residual, edges, weights=rows.weight)
        axes.stairs(counts, edges, color=FIRST, fill=True, alpha=0.28)
        axes.stairs(counts, edges, color=FIRST, linewidth=1.5)
        axes.axvline(0, color=MUTED, linewidth=1, linestyle=(0, (3, 3)))
        axes.set_xlabel("predicted - actual")
        axes.set_ylabel("rows")

    return _draw("residuals", "histogram of residuals", _SQUARE, paint)


def training(curves: dict[str, tuple[list[int], list[float]]]) -> str:
    """The loss over steps, a line a split."""

    def paint(axes: Any) -> None:
        for (split, (steps, losses)), colour in zip(curves.items(), _colours(), strict=False):
            axes.plot(steps, losses, color=colour, linewidth=1.6, label=split)
        axes.set_xlabel("step")
        axes.set_ylabel("loss")
        axes.legend(labelcolor=INK, loc="upper right")

    return _draw("training", "loss over training steps", _WIDE, paint)


def _colours() -> list[str]:
    return [FIRST, SECOND, INK, MUTED]


def _cloud(axes: Any, x: Floats, y: Floats) -> None:
    """Dots while they are few, hexagons as dense as the rows in them where they are many."""
    if len(x) <= _MOST_DOTS:
        axes.scatter(x, y, s=10, color=FIRST, alpha=0.35, linewidths=0)
        return
    cells = axes.hexbin(x, y, gridsize=45, mincnt=1, linewidths=0.2)
    counts = np.log1p(np.asarray(cells.get_array(), float))
    opacity = 0.12 + 0.88 * counts / counts.max()
    cells.set_array(None)
    cells.set_facecolor([mpl.colors.to_rgba(FIRST, float(a)) for a in opacity])
    cells.set_edgecolor("none")


def _areas(rows: Sequence[int]) -> list[float]:
    most = max(rows, default=1)
    return [12 + 130 * count / most for count in rows]


def _unit_square(axes: Any, x: str, y: str) -> None:
    axes.set_xlim(-0.01, 1.01)
    axes.set_ylim(-0.01, 1.02)
    axes.set_xlabel(x)
    axes.set_ylabel(y)


def _short(name: str) -> str:
    return name if len(name) <= 32 else name[:31] + "…"


def _identifier(name: str) -> str:
    return "".join(c if c.isascii() and c.isalnum() else f"_{ord(c):x}" for c in name)
