"""Where metrics go: lines, event files, the console."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

from tests.trainer.run.disks import small_disk
from tests.workers import processes
from trainer.run.writers.console import ConsoleWriter, Progress
from trainer.run.writers.jsonl import JsonlWriter
from trainer.run.writers.multi import MultiWriter
from trainer.run.writers.tensorboard import TensorBoardWriter
from trainer.run.writers.tolerant import TolerantWriter


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def places(path: Path) -> list[tuple[int, str]]:
    return [(line["step"], line["split"]) for line in lines(path)]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    """Seconds that pass only when told."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_lines_are_visible_at_once_and_strict_json(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    writer = JsonlWriter(str(path))
    writer.write(10, "train", {"loss": float("nan"), "rate": 0.5, "rows": 3})
    assert lines(path) == [{"step": 10, "split": "train", "loss": None, "rate": 0.5, "rows": 3}]
    writer.close()


def test_a_resumed_run_writes_no_step_twice(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    writer = JsonlWriter(str(path))
    for step in (10, 20, 30, 40):
        writer.write(step, "train", {"loss": 1.0})
    writer.write(20, "eval", {"auc": 0.5})
    writer.close()
    with path.open("ab") as file:
        file.write(b'{"step": 50, "spl')  # killed inside a line

    resumed = JsonlWriter(str(path), resume_step=20)
    assert places(path) == [(10, "train"), (20, "train"), (20, "eval")]
    resumed.write(20, "eval", {"auc": 0.5})  # the interval's end is passed again
    resumed.write(30, "train", {"loss": 2.0})
    resumed.close()
    assert places(path) == [(10, "train"), (20, "train"), (20, "eval"), (30, "train")]
    assert lines(path)[-1]["loss"] == 2.0


def fill_the_disk(directory: str, mounted: bool) -> None:
    """Lines and events meet a full disk for a while."""
    assert mounted
    said: list[str] = []
    jsonl, events = JsonlWriter(f"{directory}/metrics.jsonl"), TensorBoardWriter(directory)
    console = io.StringIO()
    writer = MultiWriter(
        (
            TolerantWriter(jsonl, "metrics.jsonl", said.append),
            TolerantWriter(events, "tensorboard", said.append),
            ConsoleWriter(Progress(9, 0, console)),
        )
    )
    writer.write(1, "train", {"loss": 1.0})
    ballast = Path(directory, "ballast")
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(1000)) == 1000:
            pass
    for step in range(2, 202):  # more than is left in the block of the last line
        writer.write(step, "train", {"loss": 1.0})
    (line,) = [line for line in said if "to metrics.jsonl: No space left on device" in line]
    assert "the figures of step" in line
    assert line.endswith("training goes on")
    ballast.unlink()
    writer.write(300, "train", {"loss": 1.0})
    writer.close()
    resumed = JsonlWriter(f"{directory}/metrics.jsonl", resume_step=300)
    resumed.close()
    steps = [step for step, _ in places(Path(directory, "metrics.jsonl"))]
    assert steps[0] == 1
    assert steps[-1] == 300
    assert len(console.getvalue().splitlines()) == 202


def test_a_full_disk_costs_figures_and_no_run(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as mounted, processes() as start:
        if mounted:
            start(fill_the_disk, str(tmp_path / "disk"), mounted, log=tmp_path / "log").expect(0)


def test_a_new_run_begins_with_an_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    JsonlWriter(str(path)).close()
    assert path.read_text() == ""


def test_plain_lines_say_how_far_and_how_long() -> None:
    stream, clock = io.StringIO(), Clock()
    progress = Progress(500, 100, stream, clock=clock)
    console = ConsoleWriter(progress)
    clock.now = 30.0  # mostly start-up and compiling
    console.write(200, "train", {"loss": 0.5, "examples_per_second": 182_400.0})
    clock.now = 40.0
    console.write(300, "train", {"loss": 0.25, "examples_per_second": 950.0})
    console.write(300, "eval", {"auc": 0.91234})
    console.write(500, "train", {"loss": 0.125})
    console.close()
    assert stream.getvalue().splitlines() == [
        "train  step 200/500   40%  loss 0.5000  182k examples/s",
        "train  step 300/500   60%  loss 0.2500  950 examples/s  ETA 0:20",
        "eval  step 300  auc 0.9123",
        "train  step 500/500  100%  loss 0.1250",
    ]


def test_long_intervals_have_an_estimate_from_the_first_on() -> None:
    stream, clock = io.StringIO(), Clock()
    progress = Progress(500, 0, stream, clock=clock)
    clock.now = 100.0
    progress.update(100)
    assert stream.getvalue() == "train  step 100/500   20%  ETA 6:40\n"


def test_what_slows_training_is_shown_if_it_is_much() -> None:
    stream = io.StringIO()
    console = ConsoleWriter(Progress(20, 0, stream))
    figures = {"input_wait_fraction": 0.1, "step_seconds": 0.2, "allreduce_seconds": 0.02}
    console.write(10, "train", figures)
    figures = {"input_wait_fraction": 0.5, "step_seconds": 0.2, "allreduce_seconds": 0.05}
    console.write(20, "train", {**figures, "skipped_steps": 3.0})
    first, second = stream.getvalue().splitlines()
    assert first == "train  step 10/20   50%"
    assert second == "train  step 20/20  100%  input wait 50%  all-reduce 25%  3 steps skipped"


def test_a_terminal_gets_one_refreshed_line() -> None:
    stream = Terminal()
    console = ConsoleWriter(Progress(20, 0, stream))
    console.write(10, "train", {"loss": 0.5})
    console.write(20, "train", {"loss": 0.25})
    console.write(20, "eval", {"auc": 0.9})
    console.close()
    text = stream.getvalue()
    assert text.count("\r\x1b[K") == 2
    assert text.count("\n") == 2
    assert text.endswith("eval  step 20  auc 0.9\n")


def write_events(directory: str) -> None:
    writer = MultiWriter((TensorBoardWriter(directory), JsonlWriter(f"{directory}.jsonl")))
    writer.write(1, "train", {"loss": 0.5})
    writer.write(2, "train", {"loss": 0.25})
    writer.write(2, "eval", {"auc": 0.75})
    writer.flush()
    writer.close()


def read_events(directory: str) -> None:
    import tensorflow as tf
    from tensorflow.python.summary.summary_iterator import summary_iterator

    found = {
        (path.parent.name, event.step, value.tag): float(tf.make_ndarray(value.tensor))
        for path in Path(directory).glob("*/events.*")
        for event in summary_iterator(str(path))
        for value in event.summary.value
    }
    assert found == {
        ("train", 1, "loss"): 0.5, ("train", 2, "loss"): 0.25, ("eval", 2, "auc"): 0.75,
    }, found  # fmt: skip


def test_event_files_hold_what_every_writer_got(tmp_path: Path) -> None:
    with processes() as start:
        start(write_events, str(tmp_path / "tb"), log=tmp_path / "write.log").expect(0)
        start(read_events, str(tmp_path / "tb"), log=tmp_path / "read.log").expect(0)
    assert places(tmp_path / "tb.jsonl") == [(1, "train"), (2, "train"), (2, "eval")]
