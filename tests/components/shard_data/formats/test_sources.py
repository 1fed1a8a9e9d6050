"""Which files a source means, where they lie, and whether they stay what they were."""

from __future__ import annotations

import gzip
import os
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import fsspec
import pytest

from components.shard_data import inputs
from components.shard_data.options import ShardOptions
from tests.components.shard_data.formats import reads
from trainer.errors import UsageError

TEXT = b"x,y\n1,0\n2,1\n"


@pytest.fixture
def remote() -> Iterator[str]:
    """A store that is no local file system."""
    store = fsspec.filesystem("memory")
    files = {"a.csv": TEXT, "sub/b.csv": TEXT, "_c.csv": b"", "pictures/cats/x": reads.picture()}
    for name, data in files.items():
        store.pipe(f"/bucket/{name}", data)
    store.pipe("/bucket/pictures/cats/y.png", reads.picture())
    yield "memory://bucket"
    store.rm("/bucket", recursive=True)


def test_files_of_a_store_are_copied_and_read(remote: str, tmp_path: Path) -> None:
    assert reads.read(f"{remote}/a.csv", tmp_path).columns["x"] == ["1", "2"]
    assert reads.read(f"{remote}/*.csv", tmp_path).columns["x"] == ["1", "2"]
    found = reads.read(f"{remote}/pictures", tmp_path)
    assert found.columns["label"] == ["cats"] * 2
    assert found.columns["image"] == [reads.picture()] * 2


def test_packed_files_of_a_store_are_unpacked(remote: str, tmp_path: Path) -> None:
    store = fsspec.filesystem("memory")
    store.pipe("/bucket/a.zip", reads.zipped(**{"b.csv": TEXT, "c.csv": TEXT}))
    assert reads.read(f"{remote}/a.zip", tmp_path).rows == 4
    assert not list(tmp_path.rglob("archive*"))


def test_a_plain_local_file_is_read_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbf" + TEXT)
    options = ShardOptions(sources=(f"file://{tmp_path}/a.csv",), output="o", label="y")
    (file,) = inputs.find(options.sources)
    (piece,) = inputs.prepare(file, tmp_path / "work", options, reads.WHOLE)
    assert piece.path == str(tmp_path / "a.csv")
    assert not (tmp_path / "work").exists()


@pytest.mark.parametrize("images", [False, True])
def test_a_source_that_changes_while_it_is_read_is_named(tmp_path: Path, images: bool) -> None:
    path = tmp_path / ("in/a/x.png" if images else "in/a/x.csv")
    path.parent.mkdir(parents=True)
    path.write_bytes(reads.picture() if images else TEXT)
    found = inputs.find([str(tmp_path / "in")])
    inputs.check_unchanged(found)
    times = path.stat()
    path.write_bytes(path.read_bytes() + b"3,1\n")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(UsageError, match=r"in.* changed while it was read"):
        inputs.check_unchanged(found)
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(UsageError, match="changed"):
        inputs.check_unchanged(found)
    path.unlink()
    with pytest.raises(UsageError, match="in"):
        inputs.check_unchanged(found)


@pytest.mark.parametrize("name", [b"\xff.csv", b"\xff.png"])
def test_a_name_that_is_no_text_is_refused(tmp_path: Path, name: bytes) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_bytes(TEXT)
    with pytest.raises(UsageError, match=r"udcff.*not UTF-8: rename it") as caught:
        inputs.find([str(tmp_path)])
    str(caught.value).encode()


def test_names_may_hold_anything_else(tmp_path: Path) -> None:
    for name in ("a b.csv", "é[1].csv", "c\nd.csv", "#%41?.csv", "'\".csv"):
        (tmp_path / name).write_bytes(TEXT)
        assert reads.read(tmp_path / name, tmp_path / "work").rows == 2
    assert reads.read(tmp_path, tmp_path.parent / "work2").rows == 10


def test_links_are_the_files_that_they_lead_to(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "a.csv").write_bytes(TEXT)
    (tmp_path / "in/b.csv").symlink_to("../a.csv")
    (tmp_path / "in/nowhere.csv").symlink_to("gone.csv")
    (tmp_path / "in/round").symlink_to(".")
    for source in ("in", "in/*.csv", "in/b.csv"):
        found = inputs.find([str(tmp_path / source)])
        assert [file.path for file in found] == [str(tmp_path / "in/b.csv")]
        (tmp_path / "a.csv").write_bytes(TEXT + b"3,0\n")
        with pytest.raises(UsageError, match="changed"):
            inputs.check_unchanged(found)
        (tmp_path / "a.csv").write_bytes(TEXT)


def test_a_web_server_is_read(tmp_path: Path) -> None:
    (tmp_path / "a b.csv.gz").write_bytes(gzip.compress(TEXT))
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        url = f"http://127.0.0.1:{server.server_port}/a%20b.csv.gz"
        assert reads.read(url, tmp_path / "work").columns["x"] == ["1", "2"]
        (file,) = inputs.find([url])
        inputs.check_unchanged([file])
        assert inputs.fingerprint(file)["bytes"] == (tmp_path / "a b.csv.gz").stat().st_size
        with pytest.raises(UsageError, match="no such source"):
            inputs.find([f"http://127.0.0.1:{server.server_port}/gone.csv"])
        server.shutdown()


def test_a_file_that_must_not_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(TEXT)
    file = inputs.SourceFile(f"{tmp_path}/gone.csv")
    options = ShardOptions(sources=("a",), output="o", label="y")
    with pytest.raises(UsageError, match=r"cannot read .*gone\.csv: No such file"):
        inputs.fingerprint(file)
    with pytest.raises(UsageError, match=r"cannot read .*gone\.csv: No such file"):
        inputs.prepare(file, tmp_path / "work", options, 1)
    folder = inputs.SourceFile(str(tmp_path))
    with pytest.raises(UsageError, match="Is a directory"):
        inputs.prepare(folder, tmp_path / "work", options, 1)
