"""Opening a dataset directory that is damaged, of another version, or no such thing at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.datasets import make_dataset
from trainer.data.dataset import Dataset
from trainer.errors import UsageError


def _shard(manifest: Any) -> Any:
    return manifest["splits"]["train"]["shards"][0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m: m.update(format_version=2, new=1), "format version 2"),
        (lambda m: m.update(block_rows=0), "block_rows"),
        (lambda m: _shard(m).update(rows=-5), "rows"),
        (lambda m: _shard(m).update(rows=5), "its shards have"),
        (lambda m: _shard(m).update(path="../other/0.tfrecord"), "is not inside"),
        (lambda m: _shard(m).update(path="/etc/passwd"), "is not inside"),
        (lambda m: m["label"].update(name="z"), "'z' is not among the features"),
        (lambda m: m["features"].append(m["features"][0]), "two features have one name"),
    ],
)
def test_a_manifest_that_contradicts_itself(
    tmp_path: Path, change: Callable[[Any], None], words: str
) -> None:
    make_dataset(tmp_path)
    file = tmp_path / "manifest.json"
    manifest = json.loads(file.read_text())
    change(manifest)
    file.write_text(json.dumps(manifest))
    with pytest.raises(UsageError, match=words):
        Dataset.open(str(tmp_path))


@pytest.mark.parametrize("name", ["manifest.json", "statistics.json"])
@pytest.mark.parametrize("content", [b"", b"\xe8\x00", b"[1]", b"{{{", b"null", None])
def test_files_of_another_kind(tmp_path: Path, name: str, content: bytes | None) -> None:
    make_dataset(tmp_path)
    file = tmp_path / name
    if content is None:
        file.unlink()
        file.mkdir()
    else:
        file.write_bytes(content)
    with pytest.raises(UsageError, match=name):
        Dataset.open(str(tmp_path))


def test_statistics_of_another_dataset(tmp_path: Path) -> None:
    make_dataset(tmp_path)
    file = tmp_path / "statistics.json"
    statistics = json.loads(file.read_text())
    del statistics["splits"]["train"]["features"]["x0"]
    file.write_text(json.dumps(statistics))
    with pytest.raises(UsageError, match="says nothing of column 'x0' in split 'train'"):
        Dataset.open(str(tmp_path)).check_statistics("train")


def test_paths_that_are_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (str(tmp_path / "file"), str(tmp_path), "", "nosuchscheme://bucket/data"):
        with pytest.raises(UsageError):
            Dataset.open(path)
