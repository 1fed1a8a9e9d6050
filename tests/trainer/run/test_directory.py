"""Which output directories a run may start, resume or must leave alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.datasets import make_dataset
from trainer.data.dataset import Dataset
from trainer.errors import UsageError
from trainer.run.directory import RunDirectory

RESUMABLE = frozenset({"steps", "data"})
CONFIG: dict[str, Any] = {
    "data": "flights", "steps": 100, "seed": 0, "learning_rate": 0.001,
    "options": {"hidden": (256, 128), "dropout": 0.1},
}  # fmt: skip


def started(path: Path) -> RunDirectory:
    directory = RunDirectory(str(path))
    directory.start(CONFIG, RESUMABLE)
    Path(directory.checkpoints, "step-00000001").mkdir()
    return directory


def test_a_start_creates_the_directory_with_its_parents_and_config(tmp_path: Path) -> None:
    directory = started(tmp_path / "deep" / "run")
    assert directory.read_config() == json.loads(json.dumps(CONFIG))
    assert sorted(os.listdir(directory.path)) == ["checkpoints", "config.json", "logs"]


def test_the_same_configuration_resumes(tmp_path: Path) -> None:
    directory = started(tmp_path / "run")
    later = {**CONFIG, "steps": 200, "data": "elsewhere"}
    directory.check(later, RESUMABLE)
    directory.start(later, RESUMABLE)
    assert directory.read_config()["steps"] == 200


def test_another_configuration_is_refused_with_each_differing_key(tmp_path: Path) -> None:
    directory = started(tmp_path / "run")
    before = Path(directory.path, "config.json").read_bytes()
    other = {**CONFIG, "steps": 5, "seed": 1, "options": {"hidden": (64,), "dropout": 0.1}}
    for attempt in (directory.check, directory.start):
        with pytest.raises(UsageError) as caught:
            attempt(other, RESUMABLE)
        line = str(caught.value)
        assert "seed is 0 there and 1 now" in line
        assert "options.hidden is [256, 128] there and [64] now" in line
        assert "steps" not in line
        assert "dropout" not in line
        assert "use the same values to resume it, or choose another --output" in line
        assert "\n" not in line
    assert Path(directory.path, "config.json").read_bytes() == before


def test_a_directory_of_other_things_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.doc").write_text("years of work")
    with pytest.raises(UsageError, match=r"not a run directory.*thesis\.doc"):
        RunDirectory(str(tmp_path)).start(CONFIG, RESUMABLE)
    assert os.listdir(tmp_path) == ["thesis.doc"]


def test_logs_and_status_may_stand_there_before_the_run_starts(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "status.json").write_text("{}")
    started(tmp_path)


@pytest.mark.parametrize("inside", ["", "/under"])
def test_a_file_as_output_is_refused(tmp_path: Path, inside: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="is a file or lies under one"):
        RunDirectory(f"{tmp_path}/file{inside}").start(CONFIG, RESUMABLE)


def test_an_unwritable_output_is_refused_and_leaves_nothing() -> None:
    # Nobody may create anything in /proc, root included.
    with pytest.raises(UsageError, match="cannot be written"):
        RunDirectory("/proc/castell/run").start(CONFIG, RESUMABLE)


def test_a_failed_start_removes_the_directories_it_made(tmp_path: Path) -> None:
    path = tmp_path / "new" / "run"
    # A configuration that is larger than the largest file allowed, as on a full disk.
    script = (
        "import resource, sys; from trainer.run.directory import RunDirectory\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "RunDirectory(sys.argv[1]).start({'key': 'x' * 1000}, frozenset())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "UsageError" in done.stderr
    assert "File too large" in done.stderr
    assert os.listdir(tmp_path) == []


def test_a_start_that_was_killed_before_its_configuration_is_no_foreign_directory(
    tmp_path: Path,
) -> None:
    for name in ("checkpoints", "logs"):
        (tmp_path / name).mkdir()
    RunDirectory(str(tmp_path)).check({}, frozenset())
    (tmp_path / "checkpoints" / "step-00000100").mkdir()
    with pytest.raises(UsageError, match="it holds 'checkpoints' and no"):
        RunDirectory(str(tmp_path)).check({}, frozenset())


def test_urls_are_refused_except_file(tmp_path: Path) -> None:
    for url, says in (
        ("gs://bucket/run", "copy the run to a disk first"),
        ("https://host/run", "on a local or mounted disk, or in gs:// or s3://, not in https://"),
    ):
        with pytest.raises(UsageError, match=says):
            RunDirectory(url)
    assert RunDirectory(f"file://{tmp_path}/run").path == f"{tmp_path}/run"


def test_reading_a_run_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no config\.json"):
        RunDirectory(str(tmp_path)).read_config()
    (tmp_path / "config.json").write_text('{"seed": ')
    with pytest.raises(UsageError, match="is damaged"):
        RunDirectory(str(tmp_path)).read_config()


def test_the_description_of_the_data_is_kept_and_guards_the_resumption(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path / "data", rows=200)
    directory = started(tmp_path / "run")
    directory.check_dataset(dataset)
    directory.keep_dataset(dataset)
    kept = Dataset.open(directory.dataset)
    assert kept.manifest == dataset.manifest
    assert kept.statistics == dataset.statistics

    (tmp_path / "data").rename(tmp_path / "moved")
    directory.keep_dataset(Dataset.open(str(tmp_path / "moved")))

    other = make_dataset(tmp_path / "other", rows=200, seed=1)
    with pytest.raises(UsageError, match="is not the data that the run"):
        directory.check_dataset(other)
    with pytest.raises(UsageError, match="is not the data that the run"):
        directory.keep_dataset(other)
    assert Dataset.open(directory.dataset).manifest == dataset.manifest


def test_a_run_that_kept_nothing_binds_nobody(tmp_path: Path) -> None:
    directory = RunDirectory(str(tmp_path / "run"))
    directory.start(CONFIG, RESUMABLE)
    directory.keep_dataset(make_dataset(tmp_path / "data", rows=200))
    directory.start({**CONFIG, "seed": 1}, RESUMABLE)
    directory.keep_dataset(make_dataset(tmp_path / "other", rows=200, seed=1))
    assert directory.read_config()["seed"] == 1
