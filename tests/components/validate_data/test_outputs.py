"""The command's exit code and lines, the page, and the KFP step."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from components.validate_data import step
from pipelines.cli import main
from tests.components.validate_data.tables import columns, made, scaled


@dataclass(frozen=True)
class Made:
    clean: str
    bad: str


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Made:
    root = tmp_path_factory.mktemp("data")
    odd = {"<b>&": np.arange(3000) % 5}
    bad, _ = scaled({**columns(1, 3000), **odd}, "wide", 1)
    return Made(
        clean=made(root / "clean", {**columns(0, 3000), **odd}), bad=made(root / "bad", bad)
    )


def test_data_that_passes_ends_with_0(data: Made, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "--data", data.clean]) == 0
    assert "verdict: passed (0 blocking, 0 warnings)" in capsys.readouterr().out


def test_blocked_data_ends_with_2_and_one_line_and_the_outputs_are_whole(
    data: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    flags = ["--data", data.bad, "--baseline", data.clean, "--output", str(output), "--json"]
    assert main(["validate", *flags]) == 2
    said = capsys.readouterr()
    errors = [line for line in said.err.splitlines() if line.startswith("castell: error:")]
    assert len(errors) == 1
    assert "does not pass: out_of_range, wide, train" in errors[0]
    assert json.loads(said.out) == json.loads((output / "validation.json").read_text())
    assert (output / "validation.html").read_text().rstrip().endswith("</html>")


def test_two_references_are_refused(data: Made, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--data", data.bad, "--baseline", data.clean, "--run", "run"]
    assert main(["validate", *flags]) == 2
    assert "name one" in capsys.readouterr().err


def test_the_help_teaches_every_rule(capsys: pytest.CaptureFixture[str]) -> None:
    from components.validate_data.rules import KINDS

    with pytest.raises(SystemExit):
        main(["validate", "--help"])
    text = capsys.readouterr().out
    assert all(kind.meaning in text for kind in KINDS.values())


def test_the_page_stands_alone_and_shows_every_column_with_findings_first(
    data: Made, tmp_path: Path
) -> None:
    flags = ["--data", data.bad, "--baseline", data.clean, "--output", str(tmp_path / "out")]
    main(["validate", *flags])
    page = (tmp_path / "out" / "validation.html").read_text()
    assert not re.search(r'(src|href)="(?!#)', page)
    assert "<b>&" not in page
    shown = re.findall(r'<section class="card" id="column-([^"]*)">', page)
    assert shown[0] == "wide"
    assert set(shown) == {*columns(0, 10), "&lt;b&gt;&amp;"}
    assert page.count('class="line base"') == page.count('<svg class="histogram"')
    assert page.index("out_of_range") < page.index('id="column-wide"')


@dataclass
class FakeArtifact:
    path: str
    uri: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)

    def log_metric(self, name: str, value: float) -> None:
        self.metadata[name] = value


def _step(tmp_path: Path, data: str, baseline: str, *, fail: bool) -> list[FakeArtifact]:
    artifacts = [FakeArtifact(str(tmp_path / name)) for name in ("validation", "metrics", "page")]
    validation, metrics, page = artifacts
    passed = step.run(
        FakeArtifact(data), validation, metrics, page, baseline=baseline, run="", rules=[],
        fail=fail,
    )  # fmt: skip
    validation.metadata["returned"] = passed
    return artifacts


def test_the_step_says_what_it_found_and_goes_on_if_told_so(data: Made, tmp_path: Path) -> None:
    validation, metrics, page = _step(tmp_path, data.bad, data.clean, fail=False)
    assert validation.metadata["returned"] is False
    assert validation.metadata["passed"] is False
    assert metrics.metadata["blocked"] == validation.metadata["blocked"] > 0
    assert metrics.metadata["out_of_range"] == pytest.approx(0.05, abs=0.02)
    assert Path(page.path).read_text() == Path(validation.path, "validation.html").read_text()


def test_the_step_ends_with_2_after_its_outputs_are_written(
    data: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        _step(tmp_path, data.bad, data.clean, fail=True)
    assert caught.value.code == 2
    assert "castell: error:" in capsys.readouterr().err
    assert {p.name for p in tmp_path.iterdir()} == {"validation", "page"}


def test_the_step_passes_clean_data(data: Made, tmp_path: Path) -> None:
    validation, metrics, _ = _step(tmp_path, data.clean, "", fail=True)
    assert validation.metadata["returned"] is True
    assert metrics.metadata == {"blocked": 0, "warned": 0}


def test_the_component_asks_for_what_the_step_takes() -> None:
    from components.validate_data.component import validate_data

    specification = validate_data.component_spec
    assert set(specification.inputs) == {"dataset", "baseline", "run", "rules", "fail"}
    assert set(specification.outputs) == {"validation", "metrics", "report", "Output"}
