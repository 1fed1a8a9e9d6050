"""status.json is always whole, fresh while the process lives, and never stops it."""

from __future__ import annotations

import json
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from trainer.run.status import Status, close, next_generation

WORKERS = [{"rank": 0, "host": "a", "pid": 1}]


def make(path: Path) -> Status:
    return Status(str(path), replicas=2, strategy="mirrored", workers=WORKERS)


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())


def test_the_file_has_exactly_the_documented_keys(tmp_path: Path) -> None:
    path = tmp_path / "status.json"
    make(path).update("failed", 7, exit_code=138, reason="worker 1 was lost")
    content = read(path)
    age = datetime.now(UTC) - datetime.fromisoformat(content.pop("updated"))
    assert abs(age.total_seconds()) < 60
    assert content == {
        "state": "failed", "step": 7, "exit_code": 138, "reason": "worker 1 was lost",
        "replicas": 2, "strategy": "mirrored", "strategy_reason": "", "generation": 0,
        "workers": WORKERS,
    }  # fmt: skip


def test_each_start_of_a_run_is_a_generation_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "status.json"
    assert next_generation(str(path)) == 0
    make(path).update("failed", 7)
    assert next_generation(str(path)) == 1
    path.write_text("{")
    assert next_generation(str(path)) == 0


@pytest.mark.parametrize(
    ("written", "code", "stays"),
    [
        (138, 1, False),
        (138, 2, False),
        (138, 3, False),
        (143, 1, False),
        (143, 138, False),
        (138, 143, True),
        (138, 138, True),
        (3, 1, True),
        (1, 2, True),
        (0, 1, True),
    ],
)
def test_an_end_that_only_followed_from_the_run_s_own_is_replaced(
    tmp_path: Path, written: int, code: int, stays: bool
) -> None:
    path = tmp_path / "status.json"
    make(path).update("failed" if written else "completed", 7, exit_code=written, reason="lost")
    before = read(path)
    close(str(path), code, "worker 1 ended so")
    if stays:
        assert read(path) == before
    else:
        after = {"state": "failed", "exit_code": code, "reason": "worker 1 ended so"}
        assert {**before, **after, "updated": ""} == {**read(path), "updated": ""}


def test_the_end_of_a_killed_chief_is_written_by_another_and_no_other_end_is_touched(
    tmp_path: Path,
) -> None:
    path = tmp_path / "status.json"
    close(str(path), 138, "worker 0 was killed by SIGKILL")
    assert not path.exists()
    make(path).update("running", 7)
    close(str(path), 138, "worker 0 was killed by SIGKILL")
    content = read(path)
    assert (content["state"], content["exit_code"], content["step"]) == ("failed", 138, 7)
    assert content["reason"] == "worker 0 was killed by SIGKILL"
    close(str(path), 143, "something else")
    assert read(path) == content


def test_a_reader_never_sees_a_half_written_file(tmp_path: Path) -> None:
    path = tmp_path / "status.json"
    status = make(path)
    status.update("running", 0)
    ended = threading.Event()

    def rewrite() -> None:
        step = 0
        while not ended.is_set():
            step += 1
            status.update("running", step, reason="x" * (step % 5000))

    writer = threading.Thread(target=rewrite)
    writer.start()
    try:
        for _ in range(500):
            assert read(path)["state"] == "running"
    finally:
        ended.set()
        writer.join()
    assert [p.name for p in tmp_path.iterdir()] == ["status.json"]


def test_updated_moves_by_itself_until_the_end(tmp_path: Path) -> None:
    path = tmp_path / "status.json"
    status = make(path)
    status.start()
    first = read(path)
    assert (first["state"], first["step"]) == ("running", 0)
    deadline = time.monotonic() + 10
    while read(path)["updated"] == first["updated"]:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    status.update("completed", 9, exit_code=0)
    status.stop()
    last = read(path)
    assert (last["state"], last["step"], last["exit_code"]) == ("completed", 9, 0)


def test_before_there_is_a_run_a_disk_that_refuses_is_left_to_the_error_that_ends_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "status.json").mkdir()
    status = make(tmp_path / "status.json")
    status.start()
    status.update("failed", 0, exit_code=2, reason="--output cannot be written")
    status.stop()
    assert status.problem is not None
    assert capsys.readouterr().err == ""


def test_an_end_that_cannot_be_written_promises_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = make(tmp_path / "status.json")
    status.start()
    status.note(5)
    (tmp_path / "status.json").unlink()
    (tmp_path / "status.json").mkdir()
    status.update("completed", 9, exit_code=0)
    status.stop()
    assert capsys.readouterr().err.strip().endswith("status.json cannot be written: Is a directory")


def test_a_disk_that_refuses_is_warned_of_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "status.json").mkdir()  # in the way: replacing it fails, as on a full disk
    status = make(tmp_path / "status.json")
    status.start()
    status.update("running", 1)
    status.update("running", 2)
    status.stop()
    assert status.problem is not None
    assert capsys.readouterr().err.count("warning") == 1
    (tmp_path / "status.json").rmdir()
    status.update("running", 3)
    assert status.problem is None
    assert read(tmp_path / "status.json")["step"] == 3
