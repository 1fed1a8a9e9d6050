"""`--append`: whole files are added as new shards, and nothing that is there is written again."""

from __future__ import annotations

import hashlib
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from components.shard_data import directory
from components.shard_data.options import ShardOptions
from components.shard_data.shard import shard
from components.shard_data.verify import verify
from tests.components.shard_data.made import make, rows, write
from trainer.data.dataset import Dataset
from trainer.data.manifest import Manifest
from trainer.errors import UsageError


def _table(start: int, end: int, words: int = 3) -> str:
    lines = [
        f"{i},{i / 7:.3f},{'' if i % 5 == 0 else f'w{i % words}'},2024-01-{1 + i % 28:02d},{i % 3}"
        for i in range(start, end)
    ]
    return "id,real,word,day,y\n" + "\n".join(lines) + "\n"


def _append(tmp_path: Path, *sources: Path, **options: Any) -> Manifest:
    given = {"sources": [str(s) for s in sources], "output": str(tmp_path / "out"), "append": True}
    return shard(ShardOptions.parse({**given, **options}))


def _refused(tmp_path: Path, *sources: Path, **options: Any) -> str:
    before = _shards(tmp_path / "out")
    with pytest.raises(UsageError) as caught:
        _append(tmp_path, *sources, **options)
    assert _shards(tmp_path / "out") == before
    assert not (tmp_path / ".out.partial").exists()
    return str(caught.value)


def _shards(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def _first(tmp_path: Path, **options: Any) -> Path:
    write(tmp_path / "in/a.csv", _table(0, 1000))
    make(tmp_path, tmp_path / "in", **{"split": "train=0.8,eval=0.2", **options})
    return tmp_path / "in"


@pytest.mark.parametrize("layout", ["blocks", "rows"])
def test_new_files_become_new_shards(tmp_path: Path, layout: str) -> None:
    folder = _first(tmp_path, layout=layout)
    before = _shards(tmp_path / "out")
    write(folder / "b.csv", _table(1000, 1400, words=5))
    manifest = _append(tmp_path, folder, verify=True)
    after = _shards(tmp_path / "out")
    kept = {path: digest for path, digest in before.items() if path.endswith(".tfrecord")}
    assert kept.items() <= after.items()
    assert {name: split.rows for name, split in manifest.splits.items()} == {
        "train": 1120, "eval": 280,
    }  # fmt: skip
    assert manifest.feature("word").dictionary == ("w0", "w1", "w2", "w3", "w4")
    dataset = Dataset.open(str(tmp_path / "out"))
    assert dataset.split_statistics("train").rows == 1120
    assert (dataset.split_statistics("train").features["id"].max or 0) > 1000
    if layout == "blocks":
        found = {name: rows(tmp_path / "out", name) for name in manifest.splits}
        ids = sorted(i for part in found.values() for i in part["row_id"])
        assert ids == list(range(1400))
        for part in found.values():
            assert part["id"] == part["row_id"]
            assert part["word"] == [
                None if i % 5 == 0 else f"w{i % (3 if i < 1000 else 5)}" for i in part["id"]
            ]


def test_appending_twice_and_what_is_there_already(tmp_path: Path) -> None:
    folder = _first(tmp_path)
    before = _shards(tmp_path / "out")
    assert _append(tmp_path, folder).rows == 1000
    assert _shards(tmp_path / "out") == before
    for i, name in enumerate("bc"):
        write(folder / f"{name}.csv", _table(1000 + 100 * i, 1100 + 100 * i))
        assert _append(tmp_path, folder).rows == 1100 + 100 * i
    manifest = Dataset.open(str(tmp_path / "out")).manifest
    verify(tmp_path / "out", manifest)
    assert [len(entry["sha256"]) for entry in manifest.source["files"]] == [64] * 3
    sizes = [part.rows for part in manifest.splits["train"].shards]
    assert max(sizes) <= 2 * min(sizes)


def test_groups_and_times_keep_their_splits(tmp_path: Path) -> None:
    folder = _first(tmp_path, split_by="day")
    owner = {day: n for n in ("train", "eval") for day in rows(tmp_path / "out", n)["day"]}
    write(folder / "b.csv", _table(1000, 1300))
    _append(tmp_path, folder)
    for name in ("train", "eval"):
        assert all(owner[day] == name for day in rows(tmp_path / "out", name)["day"])


def test_later_moments_go_to_the_last_split(tmp_path: Path) -> None:
    folder = _first(tmp_path, split_time="day")
    limit = max(rows(tmp_path / "out", "train")["day"])
    write(folder / "b.csv", _table(1000, 1300).replace("2024-01", "2024-03"))
    assert _append(tmp_path, folder).splits["train"].rows == len(rows(tmp_path / "out")["day"])
    assert max(rows(tmp_path / "out", "train")["day"]) == limit
    assert len(rows(tmp_path / "out", "eval")["day"]) >= 300


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("id,real,word,day,y\n1,0.5,a,2024-01-01,7\n", {}, "has a class that the dataset has not"),
        ("id,real,word,day,y\nx,0.5,a,2024-01-01,1\n", {}, "'x' ("),
        ("id,real,word,y\n1,0.5,a,1\n", {}, "the dataset has it"),
        ("id,real,word,day,z,y\n1,0.5,a,2024-01-01,5,1\n", {}, "has no column 'z'"),
        ("id,real,word,day,y\n1,0.5,a,2024-01-01,1\n", {"seed": 5}, "was made with seed 0, not 5"),
        ("id,real,word,day,y\n1,0.5,a,2024-01-01,\n", {}, "label y"),
    ],
)
def test_what_does_not_fit_the_dataset_is_refused(
    tmp_path: Path, text: str, options: dict[str, Any], said: str
) -> None:
    folder = _first(tmp_path)
    write(folder / "b.csv", text)
    assert said in _refused(tmp_path, folder, **options)


def test_a_file_that_was_changed_is_refused(tmp_path: Path) -> None:
    folder = _first(tmp_path)
    write(folder / "a.csv", _table(0, 1001))
    assert "a.csv was changed since it was read" in _refused(tmp_path, folder)


def test_there_must_be_a_dataset(tmp_path: Path) -> None:
    source = write(tmp_path / "a.csv", _table(0, 10))
    with pytest.raises(UsageError, match="is not a dataset directory"):
        _append(tmp_path, source)


_KILLED = """
import os, signal, sys
from components.shard_data import directory, shard as step
from components.shard_data.options import ShardOptions
def appear(*args, **named):
    os.kill(os.getpid(), signal.SIGKILL)
directory.appear = appear
step.shard(ShardOptions.parse({"sources": [sys.argv[1]], "output": sys.argv[2], "append": True}))
"""


def test_a_killed_append_leaves_the_dataset_as_it_was(tmp_path: Path) -> None:
    folder = _first(tmp_path)
    before = _shards(tmp_path / "out")
    write(folder / "b.csv", _table(1000, 1200))
    ended = subprocess.run(
        [sys.executable, "-c", _KILLED, str(folder), str(tmp_path / "out")],
        timeout=120, check=False,
    )  # fmt: skip
    assert ended.returncode == -signal.SIGKILL
    assert _shards(tmp_path / "out") == before
    assert _append(tmp_path, folder, verify=True).rows == 1200
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


def test_an_append_waits_for_no_other(tmp_path: Path) -> None:
    folder = _first(tmp_path)
    write(folder / "b.csv", _table(1000, 1200))
    with (
        directory.alone(str(tmp_path / "out")),
        pytest.raises(UsageError, match="another run is writing it"),
    ):
        _append(tmp_path, folder)
    assert _append(tmp_path, folder).rows == 1200


def test_figures_are_those_of_all_rows_at_once(tmp_path: Path) -> None:
    folder = _first(tmp_path)
    write(folder / "b.csv", _table(4000, 4400))
    write(tmp_path / "out/notes.txt", "mine")
    _append(tmp_path, folder)
    found = Dataset.open(str(tmp_path / "out")).split_statistics("train").features["id"]
    ids = np.array(rows(tmp_path / "out", "train")["id"])
    assert found.histogram_edges is not None
    counts, _ = np.histogram(ids, bins=np.array(found.histogram_edges))
    assert found.histogram_edges[-1] >= 4300
    assert tuple(counts.tolist()) == found.histogram_counts
    assert (tmp_path / "out/notes.txt").read_text() == "mine"


def test_typed_files_are_added_with_their_types(tmp_path: Path) -> None:
    def table(start: int, end: int, **more: Any) -> pa.Table:
        ids = np.arange(start, end)
        return pa.table({"id": ids, "real": ids / 7, "tags": [["a"] * (i % 3) for i in ids],
                         "y": ids % 2, **more})  # fmt: skip

    (tmp_path / "in").mkdir()
    parquet.write_table(table(0, 500), tmp_path / "in/a.parquet")
    make(tmp_path, tmp_path / "in")
    parquet.write_table(table(500, 700), tmp_path / "in/b.parquet")
    _append(tmp_path, tmp_path / "in")
    found = rows(tmp_path / "out")
    assert found["id"] == list(range(700))
    assert found["tags"] == [["a"] * (i % 3) for i in range(700)]
    wrong = table(700, 710).set_column(1, "real", pa.array(["a"] * 10))
    parquet.write_table(wrong, tmp_path / "in/c.parquet")
    assert "column real is string, in the dataset float32" in _refused(tmp_path, tmp_path / "in")
