"""Damaged files of every format end in one line, whatever is damaged."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

# `make fuzz` asks for more.
SECONDS = float(os.environ.get("CASTELL_FUZZ_SECONDS", "3"))


@pytest.mark.timeout(SECONDS + 100)
def test_damaged_files_never_end_in_anything_but_one_line() -> None:
    command = [sys.executable, "-m", "tests.components.shard_data.formats.fuzz", str(SECONDS)]
    if "CASTELL_FUZZ_SEED" in os.environ:
        command.append(os.environ["CASTELL_FUZZ_SEED"])
    done = subprocess.run(
        command, capture_output=True, check=False, text=True, timeout=SECONDS + 60
    )
    assert done.returncode == 0, done.stderr[-5000:]
    assert int(done.stdout) > 0
