"""Following a run directory by its files alone."""

from __future__ import annotations

import json
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from trainer.errors import PeerLost, Stopped, UsageError
from trainer.run import commits
from trainer.run.watch import RunWatch

PATIENCE = 1.0


def begin(run: Path) -> None:
    (run / "dataset").mkdir(parents=True)
    (run / "dataset" / "manifest.json").write_text("{}")


def commit(run: Path, step: int) -> Path:
    path = run / "checkpoints" / commits.step_name(step)
    path.mkdir(parents=True)
    (path / "variables.index").write_text(f"values of step {step}")
    commits.write(str(path), step, {}, {})
    return path


def tell(run: Path, state: str, step: int = 0, code: int | None = None) -> None:
    run.mkdir(exist_ok=True)
    content = {"state": state, "step": step, "exit_code": code, "updated": time.time()}
    (run / "status.json").write_text(json.dumps(content))


def make_watch(run: Path, **changes: Any) -> RunWatch:
    options = {
        "patience_seconds": PATIENCE, "last_step": None, "stopped": lambda: False,
        "say": print, **changes,
    }  # fmt: skip
    return RunWatch(str(run), **options)


def followed(watch: RunWatch, done: set[int] | None = None) -> list[int]:
    watch.wait_for_start()
    return [commit.step for commit in watch.commits(done if done is not None else set())]


def test_each_commit_is_seen_until_the_run_ends(tmp_path: Path) -> None:
    def train() -> None:
        tell(tmp_path, "running")
        time.sleep(0.3)
        begin(tmp_path)
        for step in (10, 20, 30):
            commit(tmp_path, step)
            time.sleep(0.3)
        (tmp_path / "checkpoints" / commits.step_name(40)).mkdir()  # never finished
        tell(tmp_path, "failed", 30, code=1)

    watch = make_watch(tmp_path, patience_seconds=30.0)
    chief = threading.Thread(target=train)
    chief.start()
    assert followed(watch, {20}) == [10, 30]
    assert watch.state == "failed"
    chief.join()


def test_what_was_evaluated_before_is_not_seen_again(tmp_path: Path) -> None:
    begin(tmp_path)
    for step in (10, 20):
        commit(tmp_path, step)
    tell(tmp_path, "completed", 20, code=0)
    assert followed(make_watch(tmp_path, last_step=20), {10}) == [20]


def test_deleted_and_damaged_commits_are_passed_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begin(tmp_path)
    paths = [commit(tmp_path, step) for step in (10, 20, 30)]
    (paths[1] / "variables.index").write_text("?")
    tell(tmp_path, "completed", 30, code=0)
    watch = make_watch(tmp_path, last_step=30)
    watch.wait_for_start()
    seen = []
    for found in watch.commits(set()):
        seen.append(found.step)
        shutil.rmtree(paths[2])  # the run keeps only its newest
    assert seen == [10]
    (line,) = capsys.readouterr().out.splitlines()
    assert "step-00000020 is skipped: variables.index has 1 bytes" in line


def test_an_end_of_an_earlier_attempt_is_not_the_end(tmp_path: Path) -> None:
    begin(tmp_path)
    tell(tmp_path, "completed", 30, code=0)  # and now the same run is to do more
    watch = make_watch(tmp_path)

    def train() -> None:
        time.sleep(0.7)
        tell(tmp_path, "running", 30)
        commit(tmp_path, 40)
        tell(tmp_path, "completed", 40, code=0)

    chief = threading.Thread(target=train)
    chief.start()
    assert followed(watch) == [40]
    chief.join()


def test_after_an_end_that_is_restarted_the_run_is_waited_for(tmp_path: Path) -> None:
    begin(tmp_path)
    tell(tmp_path, "running")
    watch = make_watch(tmp_path)

    def train() -> None:
        time.sleep(0.2)
        tell(tmp_path, "preempted", 10, code=143)
        time.sleep(0.8)
        tell(tmp_path, "running", 10)
        commit(tmp_path, 20)
        tell(tmp_path, "failed", 20, code=138)

    chief = threading.Thread(target=train)
    chief.start()
    began = time.monotonic()
    assert followed(watch) == [20]  # and after the second end nobody comes
    assert time.monotonic() - began > 1.0 + PATIENCE
    chief.join()


def test_a_run_that_never_begins_is_given_up_with_138(tmp_path: Path) -> None:
    with pytest.raises(PeerLost, match=r"no run has begun in .* within 1 s .* same --output"):
        make_watch(tmp_path / "run").wait_for_start()


def test_a_chief_without_a_sign_of_life_is_given_up_with_138(tmp_path: Path) -> None:
    begin(tmp_path)
    commit(tmp_path, 10)
    tell(tmp_path, "running")
    watch = make_watch(tmp_path)
    with pytest.raises(PeerLost, match=r"the chief has written nothing to .*status\.json for \d s"):
        followed(watch)


def test_a_stop_is_heeded_while_waiting(tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        make_watch(tmp_path, stopped=lambda: True).wait_for_start()


@pytest.mark.parametrize("step", [None, "9", [], {}, True, float("inf")])
def test_an_end_without_a_step_is_an_end(tmp_path: Path, step: Any) -> None:
    begin(tmp_path)
    commit(tmp_path, 10)
    watch = make_watch(tmp_path, last_step=10)
    tell(tmp_path, "completed", step, code=0)
    assert followed(watch) == [10]


def test_a_run_that_cannot_begin_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for output in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(UsageError, match="is a file or lies under one: name a directory"):
            make_watch(output, patience_seconds=60).wait_for_start()
