"""Runs the trainer as a child process: its output streams through, SIGTERM reaches it.

A process of its own, since the trainer leaves by exit codes that mean something and must fork its
workers from a process that has run no TensorFlow op.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trainer import errors
from trainer.run.child import stops_passed_on

_MEANINGS = {
    errors.EXIT_FAULT: "an error of the Task or of castell; its traceback stands above",
    errors.EXIT_USAGE: "bad configuration or input, as the line above says",
    errors.EXIT_DIVERGED: "diverged: lower learning_rate, or set clip_norm",
    errors.EXIT_PEER_LOST: "a worker was lost or never came; worth another try",
    errors.EXIT_STOPPED: "told to stop; the checkpoint is written",
}


class TrainingEnded(errors.CastellError):
    """The trainer left with another exit code than 0; `exit_code` is that code.

    detail: what is known beyond the code's meaning.
    """

    def __init__(self, code: int, detail: str = "") -> None:
        super().__init__(f"training ended with exit code {code}: {detail or meaning(code)}")
        self.exit_code = code


def meaning(code: int) -> str:
    """Returns what an exit code of the trainer says, for a person."""
    if code < 0:
        name = signal.Signals(-code).name
        return f"killed by {name}" + (", often for want of memory" if name == "SIGKILL" else "")
    return _MEANINGS.get(code, "not one of the trainer's own codes")


def train(*, data: str, output: str, task: str, workers: int, config: Mapping[str, Any]) -> None:
    """Trains until the trainer is done; `config` holds its keys and the Task's.

    Raises:
      TrainingEnded: the trainer did not leave with 0.
    """
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "config.json")
        file.write_text(json.dumps(dict(config)))
        command = [sys.executable, "-m", "trainer", "--data", data, "--output", output]
        command += ["--task", task, "--config", str(file)]
        # One worker is not a cluster: the trainer is then free to find one in its environment.
        command += ["--workers", str(workers)] if workers > 1 else []
        code = run(command)
    if code:
        raise TrainingEnded(code)


def run(command: Sequence[str]) -> int:
    """Runs `command` on this process's own stdout and stderr and returns its exit code."""
    with stops_passed_on() as started:
        child = subprocess.Popen(command)
        started(child)
        return child.wait()
