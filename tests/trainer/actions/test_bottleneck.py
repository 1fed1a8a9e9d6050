"""A run that waits for its rows says so, says what helps, and says when it is over."""

from __future__ import annotations

from typing import Any

from trainer.actions.bottleneck import Bottleneck
from trainer.actions.report import Report


def told(shares: list[float], split: str = "train", **changes: Any) -> list[str]:
    lines: list[str] = []
    data: Any = {"layout": "rows", "remote": True, "lanes": 4, "shards": 16, **changes}
    action = Bottleneck(say=lines.append, **data)
    for step, share in enumerate(shares, 1):
        metrics = {"input_wait_fraction": share}
        action(Report(100 * step, split, metrics, lambda: None, lambda reason: None))
    return lines


def test_a_single_slow_interval_is_no_bottleneck() -> None:
    assert told([0.9, 0.1, 0.9, 0.9, 0.1]) == []
    assert told([0.9] * 9, split="eval") == []


def test_a_bottleneck_is_said_once_with_what_helps_and_when_it_is_over() -> None:
    (first, second) = told([0.5] * 9 + [0.1] * 5)
    assert "waited for rows 50% of the time up to step 300" in first
    for words in ("--cache", "--layout blocks", "--lanes, now 4", "16 shards"):
        assert words in first
    assert "keeps up again" in second


def test_what_would_not_help_is_not_advised() -> None:
    (line,) = told([0.5] * 3, layout="blocks", remote=False, lanes=16)
    for words in ("--cache", "--layout", "--lanes", "replicas"):
        assert words not in line
    assert "more than 16 shards" in line


def test_it_does_not_go_on_and_on() -> None:
    lines = told(([0.5] * 3 + [0.1] * 3) * 20)
    assert len(lines) == 2 * 3
