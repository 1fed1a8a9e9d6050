"""A checkpoint holds all of a step's values or does not count."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
from pathlib import Path

import pytest

from tests.trainer.run.disks import small_disk
from tests.trainer.run.saving import (
    MANY_ROWS,
    ROWS,
    make_variables,
    restore_under,
    restores,
    run,
    save_steps,
)
from tests.workers import processes
from trainer.errors import UsageError
from trainer.run.commits import COMMIT_NAME, commit_at, latest


def step_path(directory: Path, step: int) -> Path:
    return directory / f"step-{step:08d}"


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Checkpoints of the steps 10, 20 and 30; not to be changed."""
    path = tmp_path_factory.mktemp("saved") / "checkpoints"
    run(save_steps, str(path), [10, 20, 30], 3, log=path.parent / "log")
    return path


@pytest.fixture
def directory(saved: Path, tmp_path: Path) -> Path:
    """A copy of `saved` to damage."""
    return Path(shutil.copytree(saved, tmp_path / "checkpoints"))


def newest(directory: Path) -> tuple[int | None, list[str]]:
    """The step of the newest whole checkpoint and the lines about those passed over."""
    lines: list[str] = []
    commit = latest(str(directory), lines.append)
    assert all("\n" not in line for line in lines)
    return commit.step if commit else None, lines


def test_the_newest_is_restored_with_all_its_values(saved: Path, tmp_path: Path) -> None:
    assert newest(saved) == (30, [])
    run(restores, str(saved), 30, log=tmp_path / "log")


def test_the_commit_says_what_is_in_it(saved: Path) -> None:
    content = json.loads((step_path(saved, 30) / COMMIT_NAME).read_text())
    assert content["step"] == 30
    assert content["meta"] == {"task": "tabular"}
    assert content["variables"]["model/0000/dense/kernel:0"] == {
        "shape": [ROWS, 2], "dtype": "float32",
    }  # fmt: skip
    for name, described in content["files"].items():
        assert (step_path(saved, 30) / name).stat().st_size == described["bytes"]


def test_equal_values_have_equal_fingerprints(saved: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    run(save_steps, str(again), [30], 3, log=tmp_path / "log")
    fingerprint = commit_at(str(saved), 30).fingerprint
    assert commit_at(str(again), 30).fingerprint == fingerprint
    assert commit_at(str(saved), 20).fingerprint != fingerprint


def test_no_directory_and_an_empty_one_have_no_checkpoint(tmp_path: Path) -> None:
    assert newest(tmp_path / "nowhere") == (None, [])
    assert newest(tmp_path) == (None, [])


def data_file(directory: Path, step: int) -> Path:
    return next(step_path(directory, step).glob("variables.data-*"))


def test_a_truncated_file_is_passed_over(directory: Path) -> None:
    path = data_file(directory, 30)
    os.truncate(path, path.stat().st_size - 1)
    step, (line,) = newest(directory)
    assert step == 20
    assert "step-00000030 is skipped: variables.data" in line
    assert "bytes instead of" in line


@pytest.mark.parametrize("name", ["variables.data-00000-of-00001", "variables.index", COMMIT_NAME])
def test_one_altered_byte_is_noticed_in_every_file(directory: Path, name: str) -> None:
    path = step_path(directory, 30) / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    step, (line,) = newest(directory)
    assert step == 20
    assert name in line


def test_missing_files_and_a_missing_commit_are_passed_over(directory: Path) -> None:
    (step_path(directory, 30) / COMMIT_NAME).unlink()
    data_file(directory, 20).unlink()
    step, lines = newest(directory)
    assert step == 10
    assert [line.partition("skipped: ")[2] for line in lines] == [
        "COMMIT.json is missing", "variables.data-00000-of-00001 is missing",
    ]  # fmt: skip


def test_a_renamed_checkpoint_is_not_taken_for_another_step(directory: Path) -> None:
    step_path(directory, 30).rename(step_path(directory, 40))
    step, (line,) = newest(directory)
    assert (step, "is of step 30" in line) == (20, True)


def test_a_certain_step_can_be_asked_for(directory: Path) -> None:
    assert commit_at(str(directory), 20).step == 20
    with pytest.raises(UsageError, match=r"no checkpoint of step 25 .* there: 10, 20, 30"):
        commit_at(str(directory), 25)
    data_file(directory, 20).unlink()
    with pytest.raises(UsageError, match=r"is not whole: .* others: 10, 30"):
        commit_at(str(directory), 20)


def test_only_the_newest_stay(directory: Path, tmp_path: Path) -> None:
    (directory / ".saving-step-00000035").mkdir()
    (directory / ".discarded-step-00000005").mkdir()
    (step_path(directory, 15)).mkdir()
    run(save_steps, str(directory), [40], 2, log=tmp_path / "log")
    assert sorted(os.listdir(directory)) == ["step-00000030", "step-00000040"]


def test_a_damaged_later_one_never_displaces_what_is_saved_before_it(
    directory: Path, tmp_path: Path
) -> None:
    for step in (20, 30):
        data_file(directory, step).write_bytes(b"")
    run(save_steps, str(directory), [15], 1, log=tmp_path / "log")
    assert newest(directory)[0] == 15
    run(save_steps, str(directory), [20, 30], 1, log=tmp_path / "log")
    assert newest(directory) == (30, [])
    assert os.listdir(directory) == ["step-00000030"]


def test_saving_a_step_again_replaces_it(directory: Path, tmp_path: Path) -> None:
    run(save_steps, str(directory), [30], 3, log=tmp_path / "log")
    assert sorted(os.listdir(directory)) == [f"step-000000{step}" for step in (10, 20, 30)]
    run(restores, str(directory), 30, log=tmp_path / "log")


def test_a_kill_in_the_middle_of_saving_leaves_a_whole_checkpoint(tmp_path: Path) -> None:
    directory = tmp_path / "checkpoints"

    def saving() -> bool:
        return any(name.startswith(".saving") for name in os.listdir(directory))

    run(save_steps, str(directory), [1], 3, MANY_ROWS, log=tmp_path / "0.log")
    killed_inside = 0
    with processes() as start:
        for attempt in range(1, 4):
            steps = range(attempt * 100, attempt * 100 + 99)
            log = tmp_path / f"{attempt}.log"
            worker = start(save_steps, str(directory), steps, 3, MANY_ROWS, log=log)
            worker.wait_for(saving)
            worker.send(signal.SIGKILL)
            assert worker.wait() == -signal.SIGKILL
            killed_inside += saving()
            step, _ = newest(directory)
            assert step is not None
            run(restores, str(directory), step, MANY_ROWS, log=tmp_path / "restore.log")
    assert killed_inside
    run(save_steps, str(directory), [1000], 1, log=tmp_path / "last.log")
    assert os.listdir(directory) == ["step-00001000"]


def fill_the_disk(directory: str, mounted: bool) -> None:
    from trainer.run import checkpoint

    checkpoint.save(directory, 1, make_variables(1), {}, keep=1)
    before = sorted(os.listdir(directory))
    large = {f"model/{i}": variable for i in range(4) for variable in make_variables(2).values()}
    if not mounted:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    else:
        Path(directory, "..", "ballast").write_bytes(bytes(400_000))
    with pytest.raises(checkpoint.SaveFailed) as caught:
        checkpoint.save(directory, 2, {**make_variables(2), **large}, {}, keep=1)
    line = str(caught.value)
    assert line.startswith(f"checkpoint of step 2 in {directory} could not be written: ")
    assert line.endswith("No space left on device" if mounted else "File too large")
    assert "\n" not in line
    assert sorted(os.listdir(directory)) == before
    restores(directory, 1)


def test_a_full_disk_fails_the_save_and_nothing_else(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as mounted:
        directory = tmp_path / "disk" / "checkpoints"
        run(fill_the_disk, str(directory), mounted, log=tmp_path / "log")


def restore_others(directory: str) -> None:
    """Restoring into variables that do not fit names them and assigns nothing."""
    import tensorflow as tf

    from trainer.run import checkpoint

    commit = checkpoint.commit_at(directory, 30)
    variables = make_variables(-1)
    del variables["other/0001/words"]
    variables["other/0000/scale"] = tf.Variable(tf.zeros([4], tf.bfloat16))
    variables["model/0001/new"] = tf.Variable(0.0)
    variables["optimizer/loss/0000/iterations"] = tf.Variable(-1)
    with pytest.raises(UsageError) as caught:
        checkpoint.restore(commit, variables)
    line = str(caught.value)
    for difference in (
        "of another Task or configuration",
        "other/0001/words is only in the checkpoint",
        "model/0001/new is not in it",
        "other/0000/scale is bfloat16[3] there and bfloat16[4] here",
        "optimizer/loss/0000/iterations is int64[] there and int32[] here",
    ):
        assert difference in line, line
    assert "kernel" not in line
    assert float(variables["model/0000/dense/kernel:0"][0, 0]) == -1

    # A whole group may be missing: who serves needs no optimizer.
    model = {k: v for k, v in make_variables(-1).items() if k.startswith("model/")}
    checkpoint.restore(commit, model)
    assert float(model["model/0000/dense/kernel:0"][0, 0]) == 30


def test_restoring_into_another_task_names_the_differences(saved: Path, tmp_path: Path) -> None:
    run(restore_others, str(saved), log=tmp_path / "log")


@pytest.mark.parametrize("kind", ["one_device", "mirrored"])
def test_restoring_and_saving_under_a_strategy(directory: Path, tmp_path: Path, kind: str) -> None:
    run(restore_under, str(directory), kind, log=tmp_path / "log")
