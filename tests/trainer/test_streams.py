"""A run whose lines cannot be written goes on, and ends with its own code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.runs import flags, run_main, status
from tests.workers import Worker
from trainer.data.dataset import Dataset
from trainer.streams import Tolerant


def _onto_full_disk(argv: list[str]) -> int:
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, 1)
    os.dup2(full, 2)
    return run_main(argv)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_outlives_its_terminal(
    dataset: Dataset, tmp_path: Path, start: Callable[..., Worker], workers: int
) -> None:
    argv = flags(dataset, tmp_path / "run", steps=20, log_every=5, checkpoint_every=20)
    argv += ["--workers", str(workers)] if workers > 1 else []
    start(_onto_full_disk, argv, log=tmp_path / "log").expect(0)
    assert status(tmp_path / "run")["step"] == 20


# Through a shell, since only it can start a program with a closed stream; no TensorFlow is needed.
@pytest.mark.parametrize(
    "where", ["2>/dev/full", "2>&-", "2>&- <&-", "2>&1 | true; exit ${PIPESTATUS[0]}"]
)
def test_a_mistake_keeps_its_code_where_it_cannot_be_told(where: str) -> None:
    command = f"{sys.executable} -m trainer --task nonesuch {where}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=60, check=False)
    assert done.returncode == 2


_WHERE_LINES_GO = """
import os, sys
from trainer.streams import tolerate
tolerate("stderr")
print("lost", file=sys.stderr, flush=True)
print(os.path.realpath("/proc/self/fd/2"))
"""


def test_a_closed_stream_leaves_no_number_for_the_next_file() -> None:
    command = f"exec {sys.executable} -c '{_WHERE_LINES_GO}' 2>&-"
    done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=60, check=True)
    assert done.stdout.decode().strip() == os.devnull


def test_a_stream_that_works_is_passed_on(capsys: pytest.CaptureFixture[str]) -> None:
    stream: Any = Tolerant(sys.stderr)
    print(json.dumps({"step": 1}), file=stream, flush=True)
    stream.writelines(["a\n", "b\n"])
    assert capsys.readouterr().err == '{"step": 1}\na\nb\n'
    assert stream.isatty() == sys.stderr.isatty()
