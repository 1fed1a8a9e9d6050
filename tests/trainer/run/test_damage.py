"""Files of a run that hold something else than they should: passed over, or one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainer.actions.metric import history
from trainer.config import TrainConfig
from trainer.run import commits, marks
from trainer.run.choice import choose
from trainer.run.status import close, next_generation
from trainer.run.writers.jsonl import JsonlWriter

ODD = [
    "", "5", "null", "[5]", "{", '"text"', "[" * 100_000, "9" * 5000, '{"step": null}',
    '[{"step": 1e400, "metric": "auc", "value": 1}]', '{"step": 1e400, "split": "eval", "loss": 1}',
    '[{"step": 1, "metric": "auc", "value": %s}]' % ("9" * 400),
    '{"step": 1, "split": "eval", "loss": %s}' % ("9" * 400),
    '{"generation": 1e400}', '{"generation": []}', '{"state": "running"}', "\0",
]  # fmt: skip


def _history(path: Path) -> Any:
    config = TrainConfig(data="d", output="o")
    return history(str(path), config, until=10)


def _figures(path: Path) -> Any:
    JsonlWriter(str(path), resume_step=10).close()
    return [line for line in path.read_text().splitlines() if "9" * 400 not in line]


def _evaluated(path: Path) -> Any:
    from trainer.follow import _steps_in

    return _steps_in(str(path), "eval") - {1}


@pytest.mark.parametrize("text", ODD)
@pytest.mark.parametrize(
    ("name", "look", "found"),
    [
        ("best.json", lambda path: marks.read(str(path.parent)), []),
        ("status.json", lambda path: next_generation(str(path)), 0),
        ("status.json", lambda path: close(str(path), 138, "lost"), None),
        ("metrics.jsonl", _history, []),
        ("metrics.jsonl", _figures, []),
        ("evaluations.jsonl", _evaluated, set()),
    ],
)
def test_an_odd_file_is_as_good_as_none(
    tmp_path: Path, name: str, look: Callable[[Path], Any], found: Any, text: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert look(path) == found


@pytest.mark.parametrize("text", ODD)
def test_an_odd_commit_is_damaged(tmp_path: Path, text: str) -> None:
    path = tmp_path / commits.step_name(10)
    path.mkdir()
    (path / commits.COMMIT_NAME).write_text(text)
    with pytest.raises(commits.NotWhole, match="damaged"):
        commits.verify(str(path))


def test_a_mark_of_no_step_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / commits.step_name(10)
    path.mkdir()
    (path / "variables.index").write_text("values")
    commits.write(str(path), 10, {}, {})
    (tmp_path / "best.json").write_text(json.dumps([{"step": -5, "metric": "auc", "value": 1}]))
    assert choose(str(tmp_path)).why == "step 10, the newest"
