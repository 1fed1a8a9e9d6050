"""A run in a store and its local copies: in step, in order, each file with one owner."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from trainer.run import commits, marks
from trainer.run.copy import RunCopy, evaluators
from trainer.run.marks import Mark
from trainer.run.store import Store

URL = "memory://bucket/run"


class Recorded(Store):
    """A real store that also says what was asked of it."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.done: list[tuple[str, str]] = []

    def put(self, path: str, name: str) -> None:
        self.done.append(("put", name))
        super().put(path, name)

    def remove(self, name: str) -> None:
        self.done.append(("remove", name))
        super().remove(name)


@pytest.fixture(autouse=True)
def _empty() -> Iterator[None]:
    yield
    memory = fsspec.filesystem("memory")
    if memory.exists("/bucket"):
        memory.rm("/bucket", recursive=True)


def chief(path: Path, store: Store | None = None, *, marks_best: bool = False) -> RunCopy:
    path.mkdir(exist_ok=True)
    return RunCopy(
        store or Store(URL), str(path), lambda n: not evaluators(n, marks_best=marks_best)
    )


def evaluator(path: Path, *, marks_best: bool = False) -> RunCopy:
    path.mkdir(exist_ok=True)
    return RunCopy(Store(URL), str(path), lambda n: evaluators(n, marks_best=marks_best))


def save(run: Path, step: int, content: bytes = b"weights") -> str:
    path = run / "checkpoints" / commits.step_name(step)
    path.mkdir(parents=True, exist_ok=True)
    (path / "data-0").write_bytes(content + str(step).encode())
    (path / "index").write_bytes(b"index")
    commits.write(str(path), step, {}, {})
    return f"checkpoints/{path.name}"


def tree(path: Path) -> dict[str, bytes]:
    return {str(f.relative_to(path)): f.read_bytes() for f in path.rglob("*") if f.is_file()}


def test_a_copy_elsewhere_is_the_same_run(tmp_path: Path) -> None:
    first = chief(tmp_path / "a")
    first.fetch(all_commits=True)
    for step in (100, 200):
        save(tmp_path / "a", step)
    (tmp_path / "a" / "metrics.jsonl").write_text("{}\n")
    first.sync()
    chief(tmp_path / "b").fetch(all_commits=True)
    assert tree(tmp_path / "a") == tree(tmp_path / "b")
    assert len(tree(tmp_path / "b")) == 7


def test_a_commit_comes_after_its_files_and_goes_before_them(tmp_path: Path) -> None:
    run, store = tmp_path / "a", Recorded(URL)
    copy = chief(run, store)
    step = save(run, 100)
    for name in ("status.json", "metrics.jsonl"):
        (run / name).write_text("{}")
    (run / "checkpoints" / ".saving-step-00000200").mkdir()
    (run / "checkpoints" / ".saving-step-00000200" / "data-0").write_text("half")
    copy.sync()
    assert store.done == [
        ("put", "metrics.jsonl"),  # who resumes from the checkpoint has its figures
        ("put", f"{step}/data-0"), ("put", f"{step}/index"), ("put", f"{step}/COMMIT.json"),
        ("put", "status.json"),
    ]  # fmt: skip
    store.done.clear()
    copy.sync()
    assert store.done == []
    commits.discard(str(run / step))
    later = save(run, 200)
    copy.sync()
    assert store.done[:3] == [
        ("remove", f"{step}/COMMIT.json"), ("remove", f"{step}/data-0"), ("remove", f"{step}/index")
    ]  # fmt: skip
    assert set(Store(URL).names()) == {
        f"{later}/{name}" for name in ("data-0", "index", "COMMIT.json")
    } | {"status.json", "metrics.jsonl"}


def test_a_checkpoint_that_is_written_anew_does_not_count_meanwhile(tmp_path: Path) -> None:
    run, store = tmp_path / "a", Recorded(URL)
    copy = chief(run, store)
    step = save(run, 100)
    copy.sync()
    store.done.clear()
    commits.discard(str(run / step))
    save(run, 100, b"other weights")
    copy.sync()
    assert store.done[0] == ("remove", f"{step}/COMMIT.json")
    assert store.done[-1] == ("put", f"{step}/COMMIT.json")


def test_a_worker_takes_the_newest_whole_commit_alone(tmp_path: Path) -> None:
    first = chief(tmp_path / "a")
    for step in (100, 200, 300):
        save(tmp_path / "a", step)
    damaged = tmp_path / "a" / "checkpoints" / "step-00000300" / "data-0"
    damaged.write_bytes(b"0" * damaged.stat().st_size)
    first.sync()
    chief(tmp_path / "b").fetch(all_commits=False)
    checkpoints = str(tmp_path / "b" / "checkpoints")
    assert commits.steps_in(checkpoints) == [200, 300]
    found = commits.latest(checkpoints, lambda line: None)
    assert found is not None
    assert found.step == 200


def test_what_a_killed_chief_left_half_is_removed_by_the_next(tmp_path: Path) -> None:
    store = Store(URL)
    (half := tmp_path / "half").write_text("half")
    store.put(str(half), "checkpoints/step-00000300/data-0")
    copy = chief(tmp_path / "a")
    copy.fetch(all_commits=True)
    commits.prune(str(tmp_path / "a" / "checkpoints"), 0, 1)  # as the saver does
    copy.sync()
    assert store.names() == {}


def test_an_evaluator_follows_and_writes_its_own(tmp_path: Path) -> None:
    run, follower = tmp_path / "a", tmp_path / "b"
    (trains, looks) = chief(run), evaluator(follower)
    first = save(run, 100)
    (run / "status.json").write_text('{"state": "running"}')
    trains.sync()
    looks.sync()
    assert tree(follower) == tree(run)
    (follower / "evaluations.jsonl").write_text("{}\n")
    events = follower / "tensorboard" / "eval_evaluator"
    events.mkdir(parents=True)
    (events / "events").write_text("x")
    (follower / "status.json").write_text("not its own")
    looks.sync()
    commits.discard(str(run / first))
    save(run, 200)
    trains.sync()
    looks.sync()
    assert Store(URL).names().keys() >= {"evaluations.jsonl", "tensorboard/eval_evaluator/events"}
    assert (run / "status.json").read_text() == '{"state": "running"}'
    assert commits.steps_in(str(follower / "checkpoints")) == [200]
    assert (run / "evaluations.jsonl").exists()


@pytest.mark.parametrize("by_evaluator", [True, False])
def test_the_best_is_marked_by_who_evaluates(tmp_path: Path, by_evaluator: bool) -> None:
    run, follower = tmp_path / "a", tmp_path / "b"
    trains = chief(run, marks_best=by_evaluator)
    looks = evaluator(follower, marks_best=by_evaluator)
    save(run, 100)
    trains.sync()
    looks.sync()
    marker, other = (follower, run) if by_evaluator else (run, follower)
    marks.write(str(marker / "checkpoints"), [Mark(100, "loss", 0.5)])
    for copy in (looks, trains, looks):
        copy.sync()
    assert marks.read(str(other / "checkpoints")) == [Mark(100, "loss", 0.5)]


def test_a_file_that_is_replaced_within_its_size_is_copied_again(tmp_path: Path) -> None:
    run, store = tmp_path / "a", Recorded(URL)
    copy = chief(run, store)
    (run / "status.json").write_text("1")
    copy.sync()
    os.replace(_written(run / "next", "2"), run / "status.json")
    copy.sync()
    chief(tmp_path / "b").fetch(all_commits=True)
    assert (tmp_path / "b" / "status.json").read_text() == "2"


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path
