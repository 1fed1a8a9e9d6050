"""Reported faults of evaluation: what must hold."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

from tests.runs import flags, run_main
from trainer.data.dataset import Dataset


def evaluate_slowly(run: str, data: str, output: str) -> int:
    from pipelines.cli import main

    argv = ["evaluate", "--run", run, "--data", data, "--split", "train"]
    return main([*argv, "--output", output, "--batch", "1"])


def test_a_stop_during_evaluation_is_heeded_and_leaves_nothing(
    dataset: Dataset, tmp_path: Path, start: Any
) -> None:
    """spd#677: SIGTERM was looked at between training steps only."""
    run, output = tmp_path / "run", tmp_path / "evaluation"
    start(run_main, flags(dataset, run, steps=10), log=tmp_path / "train").expect(0)
    arguments = (str(run), dataset.path, str(output))
    worker = start(evaluate_slowly, *arguments, log=tmp_path / "evaluate")
    worker.wait_for(lambda: any(tmp_path.glob(".evaluation*")))
    worker.send(signal.SIGTERM)
    log = worker.expect(143)
    assert "castell: error: told to stop (SIGTERM)" in log
    assert "Traceback" not in log
    assert [path for path in tmp_path.iterdir() if "evaluation" in path.name] == []
