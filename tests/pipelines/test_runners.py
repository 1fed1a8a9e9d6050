"""How a local run's steps are started and stopped, as far as no container is needed for it."""

from __future__ import annotations

import inspect
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from kfp.local import docker_task_handler

from pipelines import runners
from pipelines.cli import main
from pipelines.runners.mounts import mounted
from trainer.errors import Stopped, UsageError


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    for name in ("b.csv", "a.csv", "notes.txt"):
        (tmp_path / name).write_text("a,y\n1,0\n")
    return tmp_path


def test_the_files_of_a_glob_are_mounted_and_not_their_directory(
    tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = [str(tables / "a.csv"), str(tables / "b.csv")]
    assert mounted([f"{tables}/*.csv", f"{tables}/a.csv", "gs://elsewhere/*.csv"]) == both
    assert mounted([f"file://{tables}/a.csv"]) == both[:1]
    assert mounted([str(tables)]) == [str(tables)]
    monkeypatch.chdir(tables)
    assert mounted(["*.csv"]) == both
    (tables / "c.png").write_bytes(b"")
    assert mounted(["*.png"]) == [str(tables / "c.png")]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("/nosuch/x.csv", "no such source: /nosuch/x.csv"),
        ("/tmp/nosuch-*.csv", "no such source: /tmp/nosuch-\\*.csv matches no file"),
        ("/tmp", "source /tmp: containers have a /tmp of their own"),
        ("/", "source /: containers have a / of their own"),
        ("", "a source is empty text"),
    ],
)
def test_a_source_that_cannot_be_mounted_is_refused(source: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        mounted([source])


def test_a_workdir_that_cannot_be_written_is_named(
    tables: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["run", "train_evaluate_export", "--workdir", "/proc/self"]
    assert main([*argv, "--param", f"sources={tables}/a.csv", "--param", "label=y"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("castell: error: --workdir /proc/self: ")
    assert said.count("\n") == 1


class Starting:
    """A runner in which a step runs, or none."""

    def __init__(self, step: bool) -> None:
        self._step = step
        self.closed = False

    def make(self) -> None: ...

    def stop(self) -> bool:
        return self._step

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_between_two_steps_is_a_stop(number: signal.Signals) -> None:
    runner = Starting(step=False)
    before = signal.getsignal(number)
    begun = []

    def run() -> None:
        with runners.stops_passed_on(runner):
            os.kill(os.getpid(), number)
            begun.append("the next step")

    with pytest.raises(Stopped, match="told to stop between two steps"):
        run()
    assert not begun
    assert runner.closed
    assert signal.getsignal(number) == before


def test_a_signal_in_a_step_waits_for_its_end() -> None:
    with runners.stops_passed_on(Starting(step=True)) as seen:
        os.kill(os.getpid(), signal.SIGTERM)
    assert seen == [signal.SIGTERM]


def test_kfp_runs_containers_by_the_function_that_is_replaced() -> None:
    function = docker_task_handler.run_docker_container
    assert list(inspect.signature(function).parameters) == [
        "client", "image", "command", "volumes", "container_run_args",
    ]  # fmt: skip


def test_a_process_is_known_by_more_than_its_number() -> None:
    from pipelines.runners.docker import _process

    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as running:
        known = _process(running.pid)
        assert known == _process(running.pid) != _process(os.getpid())
        running.communicate(b"\n")
    assert _process(running.pid) != known
