"""An output directory is whole or absent, and never replaces somebody's work."""

from __future__ import annotations

from pathlib import Path

import pytest

from components.output import replacing
from trainer.errors import UsageError

NAMES = frozenset({"done.json", "data"})


def _write(path: Path | str, content: str, *, fail: bool = False) -> None:
    with replacing(str(path), marker="done.json", names=NAMES, kind="result") as directory:
        (directory / "data").write_text(content)
        (directory / "done.json").write_text("{}")
        if fail:
            raise RuntimeError("on the way")


def test_it_appears_whole_and_replaces_its_own_kind(tmp_path: Path) -> None:
    output = tmp_path / "new" / "out"
    _write(output, "one")
    _write(output, "two")
    assert (output / "data").read_text() == "two"
    assert [p.name for p in output.parent.iterdir()] == ["out"]
    empty = tmp_path / "empty"
    empty.mkdir()
    _write(empty, "three")
    assert (empty / "data").read_text() == "three"


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    output = tmp_path / "out"
    with pytest.raises(RuntimeError):
        _write(output, "one", fail=True)
    assert list(tmp_path.iterdir()) == []
    _write(output, "one")
    with pytest.raises(RuntimeError):
        _write(output, "two", fail=True)
    assert (output / "data").read_text() == "one"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_other_work_is_refused(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("x")
    with pytest.raises(UsageError, match="more than an earlier result"):
        _write(foreign, "one")
    (foreign / "done.json").write_text("{}")
    with pytest.raises(UsageError, match="more than an earlier result"):
        _write(foreign, "one")
    with pytest.raises(UsageError, match="is a file"):
        _write(foreign / "thesis.tex", "one")
    with pytest.raises(UsageError, match="local directory"):
        _write("gs://bucket/out", "one")
    assert sorted(p.name for p in foreign.iterdir()) == ["done.json", "thesis.tex"]


def test_a_full_disk_is_no_fault_of_ours(tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match="no space left"),
        replacing(str(tmp_path / "a"), marker="m", names=NAMES, kind="result"),
    ):
        raise RuntimeError("SaveV2: part-0; No space left on device")
    with (
        pytest.raises(UsageError, match="File name too long"),
        replacing(str(tmp_path / ("n" * 300)), marker="m", names=NAMES, kind="result"),
    ):
        pass
    assert list(tmp_path.iterdir()) == []
