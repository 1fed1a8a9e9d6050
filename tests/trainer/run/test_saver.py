"""Checkpoints that are written while training goes on."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.trainer.run.disks import small_disk
from tests.trainer.run.saving import make_variables, restores, run
from tests.workers import processes
from trainer.run import marks
from trainer.run.commits import latest, steps_in
from trainer.run.marks import Mark


def make_saver(directory: str, variables: Any, lines: list[str], **changes: Any) -> Any:
    from trainer.run.saver import Saver

    options = {"keep": 3, "keep_best": 1, "background": True, "say": lines.append, **changes}
    return Saver(directory, variables, {"task": "tabular"}, **options)


def held_up(owner: Any, name: str) -> tuple[threading.Event, threading.Event]:
    """Makes a function wait: (set once it was called, to be set to let it go on)."""
    there, go = threading.Event(), threading.Event()
    write = getattr(owner, name)

    def wait_and_write(*args: Any) -> Any:
        there.set()
        assert go.wait(30)
        return write(*args)

    setattr(owner, name, wait_and_write)
    return there, go


def updates_do_not_tear(directory: str) -> None:
    """In every way that a variable is updated: the held values stay those of the save."""
    import tensorflow as tf

    from trainer.run.saver import Saver

    variables = {
        f"model/{i:04d}/{kind}": tf.Variable(tf.zeros([500, 100]))
        for i, kind in enumerate(("graph", "compiled", "rows", "assigned"))
    }
    graph, compiled, rows, assigned = variables.values()
    some_rows = tf.IndexedSlices(tf.ones([2, 100]), tf.constant([1, 2]))

    @tf.function
    def update() -> None:
        graph.assign_add(tf.ones_like(graph))
        rows.scatter_add(some_rows)
        assigned.assign(assigned + 1)

    @tf.function(jit_compile=True)
    def update_compiled() -> None:
        compiled.assign_add(tf.ones_like(compiled))

    there, go = held_up(Saver, "_write")
    saver = make_saver(directory, variables, [])
    for step in range(1, 4):  # the second time, too: an update by rows changes how reading works
        update()
        update_compiled()
        saver.save(step)
        assert there.wait(30)
        update()
        update_compiled()
        go.set()
        saver.wait()
        there.clear()
        go.clear()
        commit = latest(directory, print)
        assert commit is not None
        reader = tf.train.load_checkpoint(f"{commit.path}/variables")
        for name in variables:
            value = reader.get_tensor(name)
            expected = np.full_like(value, 2 * step - 1)
            if name.endswith("rows"):
                expected[[0, *range(3, 500)]] = 0
            np.testing.assert_array_equal(value, expected, name)


def test_a_variable_updated_while_it_is_written_does_not_tear(tmp_path: Path) -> None:
    run(updates_do_not_tear, str(tmp_path / "checkpoints"), log=tmp_path / "log")


def save_twice(directory: str) -> None:
    """The second save waits for the first; both are whole, and the wait is counted."""
    from trainer.run import checkpoint

    variables = make_variables(1)
    there, go = held_up(checkpoint, "write")
    saver = make_saver(directory, variables, [])
    saver.save(10)
    assert there.wait(30)
    assert steps_in(directory) == []
    assert saver.stall_seconds < 0.5
    threading.Timer(0.6, go.set).start()
    variables["optimizer/loss/0000/iterations"].assign(2)
    saver.save(20)
    assert steps_in(directory)[0] == 10
    assert saver.stall_seconds >= 0.5
    saver.save(20)
    saver.finish()
    assert steps_in(directory) == [10, 20]


def test_a_save_returns_at_once_and_the_next_one_waits_for_it(tmp_path: Path) -> None:
    run(save_twice, str(tmp_path / "checkpoints"), log=tmp_path / "log")


def save_and_hang(directory: str) -> None:
    from trainer.run import checkpoint

    saver = make_saver(directory, make_variables(1), [])
    saver.save(1)
    saver.wait()
    held_up(checkpoint, "_publish")
    saver.save(2)
    time.sleep(60)


def test_a_crash_while_writing_leaves_only_what_does_not_count(tmp_path: Path) -> None:
    directory = tmp_path / "checkpoints"
    hidden = directory / ".saving-step-00000002"
    with processes() as start:
        worker = start(save_and_hang, str(directory), log=tmp_path / "log")
        worker.wait_for(lambda: hidden.exists() and len(os.listdir(hidden)) == 2)
        worker.send(signal.SIGKILL)
        assert worker.wait() == -signal.SIGKILL
    assert sorted(os.listdir(directory)) == [hidden.name, "step-00000001"]
    run(restores, str(directory), 1, log=tmp_path / "restore.log")


def fill_the_disk(directory: str, mounted: bool, background: bool) -> None:
    """A periodic save fails and the next succeeds; then the last one of the run fails."""
    from trainer.run.checkpoint import SaveFailed

    lines: list[str] = []
    variables = make_variables(1)
    saver = make_saver(directory, variables, lines, background=background)
    saver.save(1)
    saver.wait()
    ballast = Path(directory).parent / "ballast"

    def fill() -> None:
        if mounted:
            free_bytes = shutil.disk_usage(directory).free
            ballast.write_bytes(bytes(free_bytes - 200_000))
        else:
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, -1))

    def free() -> None:
        if mounted:
            ballast.unlink()
        else:
            resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))

    fill()
    saver.save(2)
    saver.wait()
    (line,) = lines
    reason = "No space left on device" if mounted else "File too large"
    assert f"checkpoint of step 2 in {directory} could not be written: {reason}; step 1 is" in line
    assert "training goes on and the next save tries again: free some space" in line
    assert "\n" not in line
    restores(directory, 1)

    free()
    saver.save(2)  # tried again
    saver.wait()
    assert steps_in(directory) == [1, 2]
    assert len(lines) == 1

    fill()
    saver.save(3)
    with pytest.raises(SaveFailed, match=f"step 3 .*{reason}"):
        saver.finish()
    assert steps_in(directory) == [1, 2]


@pytest.mark.parametrize("background", [True, False])
def test_a_full_disk_costs_one_checkpoint_unless_it_is_the_last(
    tmp_path: Path, background: bool
) -> None:
    with small_disk(tmp_path / "disk") as mounted:
        directory = tmp_path / "disk" / "checkpoints"
        run(fill_the_disk, str(directory), mounted, background, log=tmp_path / "log")


def mark_some(directory: str) -> None:
    lines: list[str] = []
    saver = make_saver(directory, make_variables(1), lines, keep=1, keep_best=2)
    for step, auc in ((10, 0.7), (20, 0.9), (30, 0.6), (40, 0.8), (50, 0.5)):
        saver.save(step)
        saver.mark_best(step, "auc", auc, "max")
    saver.mark_best(60, "auc", 1.0, "max")  # of a save that did not succeed
    saver.finish()
    assert lines == []


def test_the_best_stay_beside_the_newest(tmp_path: Path) -> None:
    run(mark_some, str(tmp_path), log=tmp_path / "log")
    assert marks.read(str(tmp_path)) == [Mark(20, "auc", 0.9), Mark(40, "auc", 0.8)]
    assert steps_in(str(tmp_path)) == [20, 40, 50]
    found = marks.best(str(tmp_path))
    assert found is not None
    assert (found[0].step, found[1].value) == (20, 0.9)

    # The best one is damaged: the next best counts.
    next(Path(found[0].path).glob("variables.data-*")).write_bytes(b"")
    found = marks.best(str(tmp_path))
    assert found is not None
    assert found[0].step == 40

    (tmp_path / "best.json").write_text('[{"step"')
    assert marks.best(str(tmp_path)) is None


def test_ranks_are_by_value_then_by_step_and_of_one_metric() -> None:
    known = [Mark(10, "loss", 0.5)]
    first = marks.ranked(known, Mark(20, "loss", 0.5), "min", 2)
    assert [mark.step for mark in first] == [10, 20]
    assert [m.step for m in marks.ranked(first, Mark(20, "loss", 0.4), "min", 2)] == [20, 10]
    assert [m.step for m in marks.ranked(first, Mark(30, "auc", 0.4), "max", 2)] == [30]
