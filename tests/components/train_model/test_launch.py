"""The trainer as a child process: its output, its exit code's meaning, its signals."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from components.train_model import launch
from trainer.errors import UsageError

# Starts a child through `launch.run` and leaves with its exit code.
PARENT = "import sys; from components.train_model.launch import run; sys.exit(run(sys.argv[1:]))"
# Says when it is there, then when it is told to stop, and leaves as the trainer would.
CHILD = """
import signal, sys, time
def stop(signum, frame):
    print("stopped", flush=True); sys.exit(143)
signal.signal(signal.SIGTERM, stop)
print("started", flush=True)
time.sleep(60)
"""


def test_lines_come_while_the_child_runs_and_sigterm_reaches_it() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, sys.executable, "-c", CHILD],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "started\n"
        parent.send_signal(signal.SIGTERM)
        assert parent.wait(timeout=30) == 143
        assert parent.stdout.read() == "stopped\n"
    finally:
        parent.kill()
        parent.communicate()


def test_a_sigterm_before_the_child_is_there_reaches_it(tmp_path: Path) -> None:
    script = tmp_path / "early.py"
    script.write_text(
        "import os, signal, subprocess, sys\n"
        "from components.train_model import launch\n"
        "start = subprocess.Popen\n"
        "def late(command):\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    return start(command)\n"
        "launch.subprocess.Popen = late\n"
        "sys.exit(launch.run(['sleep', '60']) + 100)\n"
    )
    began = time.monotonic()
    done = subprocess.run([sys.executable, str(script)], timeout=60, check=False)
    assert done.returncode == 100 - signal.SIGTERM
    assert time.monotonic() - began < 50


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (1, "traceback"),
        (2, "bad configuration or input"),
        (3, "diverged"),
        (138, "a worker was lost"),
        (143, "the checkpoint is written"),
        (-9, "killed by SIGKILL, often for want of memory"),
        (-11, "killed by SIGSEGV"),
        (77, "not one of the trainer's own codes"),
    ],
)
def test_every_end_has_a_meaning(code: int, says: str) -> None:
    error = launch.TrainingEnded(code)
    assert error.exit_code == code
    assert says in str(error)
    assert "\n" not in str(error)


def test_a_mistake_in_the_configuration_ends_with_2(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(launch.TrainingEnded, match="exit code 2: bad configuration") as end:
        launch.train(
            data=str(tmp_path / "absent"), output=str(tmp_path / "run"), task="tabular",
            workers=1, config={"steps": 1},
        )  # fmt: skip
    assert end.value.exit_code == UsageError.exit_code
    assert "absent is not a dataset directory" in capfd.readouterr().err
    assert not (tmp_path / "run").exists()
