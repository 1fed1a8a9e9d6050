"""The page is self-contained, shows hostile names as text, and renders for every kind of label."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from components.evaluate_model import curves, report, slices
from components.evaluate_model.evaluation import Baseline, Evaluation, Fingerprints, Verdict
from components.evaluate_model.metrics import measure
from components.evaluate_model.scored import Scored
from trainer.data.manifest import Feature

RNG = np.random.default_rng(3)
HOSTILE = ("<script>alert(1)</script>", "$x_$", "中文 & co", "a\"b'c")


def _scored(kind: Any, rows: int) -> Scored:
    if kind == "regression":
        label = RNG.normal(size=rows)
        return Scored(kind, label, np.ones(rows), label + RNG.normal(size=rows))
    classes = 2 if kind == "binary" else 3
    chosen = RNG.integers(0, classes, rows)
    output = RNG.random((rows, 3)) + np.eye(3)[chosen]
    output = output / output.sum(axis=1, keepdims=True)
    return Scored(
        kind, chosen.astype(np.float64), np.ones(rows), output[:, 1] if kind == "binary" else output
    )


def _evaluation(rows: Scored, classes: tuple[str, ...] | None, run: str = "run") -> Evaluation:
    values = np.empty(rows.rows, object)
    values[:] = [HOSTILE[i % len(HOSTILE)].encode() for i in range(rows.rows)]
    slicing = slices.cut(Feature(name="<col> $y$", dtype="string"), values, None)
    measured = measure(rows)
    details: dict[str, Any] = {}
    if classes is not None:
        details = {
            "confusion": curves.confusion(rows, classes),
            "per_class": curves.class_figures(rows, classes) if len(classes) > 2 else (),
            "roc": curves.roc(rows),
            "precision_recall": curves.precision_recall(rows),
            "calibration": curves.calibration(rows),
        }
    return Evaluation(
        run=run,
        step=1200,
        data="data",
        split="test",
        rows=rows.rows,
        label="late <b>",
        kind=rows.kind,
        classes=classes,
        created="2030-01-01 00:00:00+00:00",
        replicas=1,
        metrics=measured.values,
        reasons=measured.reasons,
        slices=slices.figures(rows, [slicing]),
        verdict=Verdict(passed=True),
        residual_quantiles={} if classes else curves.residual_quantiles(rows),
        fingerprints=Fingerprints(dataset="d" * 64, checkpoint="c" * 64),
        **details,
    )


class _Page(HTMLParser):
    """Collects tags, attributes and whether every tag is closed."""

    VOID = frozenset({"meta", "link", "br", "hr", "img", "path", "use"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [v or "" for k, v in attrs if k in ("src", "href", "xlink:href", "action")]
        self.ids += [v or "" for k, v in attrs if k == "id"]

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


@pytest.mark.parametrize(
    ("kind", "classes", "rows"),
    [
        ("binary", ("no", HOSTILE[0]), 400),
        ("multiclass", ("a", HOSTILE[0], "$z$"), 400),
        ("regression", None, 400),
        ("regression", None, 5000),
    ],
)
def test_the_page_is_whole_and_loads_nothing(kind: Any, classes: Any, rows: int) -> None:
    scored = _scored(kind, rows)
    text = report.render(_evaluation(scored, classes), scored)
    page = _Page(text)
    assert page.open == []
    assert "script" not in page.tags
    assert page.links
    assert all(link.startswith("#") for link in page.links)
    assert set(page.links) <= {f"#{name}" for name in page.ids}
    assert not re.search(r"url\((?!#)|@import", text)
    assert page.tags.count("svg") >= 2
    for name in HOSTILE:
        assert name.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") in text or (
            '"' in name and "&#34;" in text
        )
    # Every colour of a picture follows the page.
    assert not re.search(r"(?:fill|stroke): #(?!ffffff)", text)


@pytest.mark.filterwarnings("error")
def test_one_class_or_one_row_still_makes_a_page() -> None:
    one_class = Scored("binary", np.zeros(6), np.ones(6), np.full(6, 0.25))
    text = report.render(_evaluation(one_class, ("no", "yes")), one_class)
    assert "the rows are all of one class" in text
    for kind, classes in (("regression", None), ("multiclass", ("a", "b", "c"))):
        scored = _scored(kind, 1)
        assert "<svg" in report.render(_evaluation(scored, classes), scored)


def test_the_training_curve_and_the_baseline_are_there(tmp_path: Path) -> None:
    lines = [{"step": s, "split": "train", "loss": 1 / (s + 1)} for s in range(5)]
    lines += [{"step": s, "split": "eval", "loss": 2 / (s + 1)} for s in (1, 3)]
    whole = "\n".join(json.dumps(line) for line in lines)
    damaged = b'\n{"step": "five", "loss": 1}\n\xff\xfe\n[]\n{"step": 5, "lo'
    (tmp_path / "metrics.jsonl").write_bytes(whole.encode() + damaged)
    scored = _scored("binary", 300)
    evaluation = _evaluation(scored, ("no", "yes"), str(tmp_path))
    metrics = evaluation.metrics
    baseline = Baseline(run="older", step=7, fingerprint="f", metrics=metrics, differences=metrics)
    text = report.render(evaluation.model_copy(update={"baseline": baseline}), scored)
    assert "loss over training steps" in text
    assert "older" in text
    assert 'class="n good"' in text


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "n/a"), (0.0, "0.0000"), (0.12345, "0.1235"), (-12.345, "\N{MINUS SIGN}12.35"),
        (123456.0, "123,456"), (1e-7, "1.000e\N{MINUS SIGN}07"), (2.5e9, "2.500e+09"),
    ],
)  # fmt: skip
def test_numbers(value: float | None, shown: str) -> None:
    assert report.figure(value) == shown
