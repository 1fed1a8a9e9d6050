"""More data than memory, more processes than one, and runs that are killed."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from components.shard_data import formats, produce
from components.shard_data import shard as step
from components.shard_data.options import ShardOptions
from components.shard_data.phases import scan
from tests.components.shard_data.made import make, make_text, rows, write
from trainer.data.dataset import Dataset
from trainer.data.rows import read_rows
from trainer.errors import UsageError

SPLIT = "train=0.7,eval=0.2,test=0.1"


def _table(start: int, end: int) -> str:
    lines = [
        f'{i},{i / 7:.3f},"{"" if i % 5 == 0 else f"w{i % 300}"}","a\n{i}",{i % 31},{i % 3}'
        for i in range(start, end)
    ]
    return "id,real,word,text,group,y\n" + "\n".join(lines) + "\n"


def _files(root: Path, *, without: str = "") -> dict[str, str]:
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.name != without
    }


@pytest.mark.parametrize("options", [{}, {"split_by": "group"}, {"split_time": "id"}])
def test_bytes_depend_neither_on_pieces_nor_on_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    for i in range(3):
        write(tmp_path / f"in/{i}.csv", _table(i * 900, (i + 1) * 900))
    made = []
    for name, piece, processes in (("a", 1 << 20, 1), ("b", 5000, 2), ("c", 700, 4)):
        monkeypatch.setattr(produce, "_LARGEST_PIECE", piece)
        make(tmp_path, tmp_path / "in", output=str(tmp_path / name), split=SPLIT,
             processes=processes, **options)  # fmt: skip
        made.append(_files(tmp_path / name))
    assert made[0] == made[1] == made[2]
    assert rows(tmp_path / "c")["text"][:2] == [f"a\n{i}" for i in rows(tmp_path / "c")["id"][:2]]


def test_files_may_be_called_and_listed_otherwise(tmp_path: Path) -> None:
    texts = [_table(i * 50, (i + 1) * 50) for i in range(3)]
    one = [write(tmp_path / f"one/{i}.csv", text) for i, text in enumerate(texts)]
    other = [write(tmp_path / f"other/{9 - i}.csv", text) for i, text in enumerate(texts)]
    make(tmp_path, *one, output=str(tmp_path / "a"), order="content")
    make(tmp_path, *reversed(other), output=str(tmp_path / "b"), order="content")
    a, b = (_files(tmp_path / name, without="manifest.json") for name in "ab")
    assert a == b
    make(tmp_path, *reversed(other), output=str(tmp_path / "c"))
    assert _files(tmp_path / "c", without="manifest.json") != a


@pytest.mark.parametrize("compression", ["zlib", "zstd"])
@pytest.mark.parametrize("layout", ["blocks", "rows"])
def test_packed_shards_hold_the_same_rows(tmp_path: Path, compression: str, layout: str) -> None:
    text = _table(0, 500)
    make_text(tmp_path, text, output=str(tmp_path / "plain"), layout=layout)
    make_text(tmp_path, text, compression=compression, layout=layout, verify=True)
    found = [
        [block.packs["float32"].tolist() for block in read_rows(Dataset.open(str(path)), "train")]
        for path in (tmp_path / "plain", tmp_path / "out")
    ]
    assert found[0] == found[1]
    sizes = [
        sum(shard.bytes for shard in Dataset.open(str(path)).split("train").shards)
        for path in (tmp_path / "plain", tmp_path / "out")
    ]
    assert sizes[1] < 0.8 * sizes[0]


def test_tensorflow_reads_zlib(tmp_path: Path) -> None:
    import tensorflow as tf

    manifest = make_text(tmp_path, _table(0, 100), compression="zlib", layout="rows", shards=1)
    path = tmp_path / "out" / manifest.splits["train"].shards[0].path
    assert len(list(tf.data.TFRecordDataset(str(path), compression_type="ZLIB"))) == 100


_KILLED = """
import os, signal, sys
from components.shard_data.phases import scan
from components.shard_data.options import ShardOptions
from components.shard_data import produce
from components.shard_data import produce, shard as step
produce._LARGEST_PIECE = 2000
read = scan.run
def run(job):
    if job.number == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return read(job)
scan.run = run
step.shard(ShardOptions.parse({"sources": [sys.argv[1]], "output": sys.argv[2], "label": "y",
                               "split": "train=1", "processes": 1}))
"""


def test_a_killed_run_leaves_no_dataset_and_is_taken_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write(tmp_path / "a.csv", _table(0, 2000))
    out = tmp_path / "out"
    ended = subprocess.run(
        [sys.executable, "-c", _KILLED, str(source), str(out)], timeout=120, check=False
    )
    assert ended.returncode == -signal.SIGKILL
    assert not out.exists()
    left = sorted((tmp_path / ".out.partial/scan").glob("*.json"))
    assert len(left) == 7
    before = [path.stat().st_mtime_ns for path in left]
    monkeypatch.setattr(produce, "_LARGEST_PIECE", 2000)
    read: list[int] = []

    def counted(job: scan.Job, piece: formats.Read) -> scan.Scanned:
        read.append(job.number)
        return scanned(job, piece)

    scanned = scan._scan
    monkeypatch.setattr(scan, "_scan", counted)
    told: list[str] = []
    step.shard(
        ShardOptions.parse({"sources": [str(source)], "output": str(out), "label": "y",
                            "split": "train=1", "processes": 1}),
        told.append,
    )  # fmt: skip
    assert before
    assert min(read) == 7
    assert any("going on" in line for line in told)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "out"]
    make(tmp_path, source, output=str(tmp_path / "again"))
    assert _files(out) == _files(tmp_path / "again")


def test_what_another_call_left_is_removed(tmp_path: Path) -> None:
    source = write(tmp_path / "a.csv", _table(0, 2000))
    subprocess.run(
        [sys.executable, "-c", _KILLED, str(source), str(tmp_path / "out")],
        timeout=120, check=False,
    )  # fmt: skip
    assert (tmp_path / ".out.partial").exists()
    make(tmp_path, source, seed=5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "out"]


_HELD = """
import sys, time
from components.shard_data import directory
with directory.alone(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


def test_two_runs_into_one_output_are_refused(tmp_path: Path) -> None:
    source = write(tmp_path / "a.csv", _table(0, 20))
    command = [sys.executable, "-c", _HELD, str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout is not None
            assert "held" in other.stdout.readline()
            with pytest.raises(UsageError, match="another run is writing it"):
                make(tmp_path, source)
        finally:
            other.kill()
    assert make(tmp_path, source).rows == 20


_MEASURED = """
import sys
from components.shard_data.options import ShardOptions
from components.shard_data.shard import shard
shard(ShardOptions.parse({"sources": [sys.argv[1]], "output": sys.argv[2], "label": "y",
                          "memory": "256MiB", "processes": 1}))
# Not of getrusage, which counts what the parent had when it forked.
(peak,) = (line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(peak.split()[1])
"""


def test_memory_is_kept_to_on_larger_data(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    part = "".join(
        f"{i},{i / 7:.4f},w{i % 900},some longer text {i},{i % 3}\n" for i in range(4000)
    )
    with path.open("w") as file:
        file.write("id,real,word,text,y\n")
        for _ in range(500):
            file.write(part)
    command = [sys.executable, "-c", _MEASURED, str(path), str(tmp_path / "out")]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240)
    peak_kib = int(ended.stdout.split()[-1])
    assert path.stat().st_size > 60 << 20
    assert peak_kib << 10 < 256 << 20


def test_a_worker_that_is_killed_is_an_error_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from components.shard_data.engine.local import Processes

    with pytest.raises(UsageError, match="lower --memory or --processes"), Processes(2) as pool:
        list(pool.run(_kill, [0, 1, 2]))


def _kill(number: int) -> int:
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.1)
    return number
