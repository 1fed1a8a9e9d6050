"""Compressed files and archives: by their bytes, in bounded memory, and damage is one line."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from components.shard_data import inputs
from components.shard_data.inputs import unpack
from components.shard_data.options import ShardOptions
from tests.components.shard_data.formats import reads
from trainer import files
from trainer.errors import UsageError

TEXT = b"x,y\n" + b"1,0\n" * 1000


def _zstd(data: bytes) -> bytes:
    packed: bytes = pa.compress(data, "zstd", asbytes=True)
    return packed


PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": lambda data: gzip.compress(data, mtime=0),
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": _zstd,
}


@pytest.mark.parametrize("suffix", PACK)
def test_what_is_packed_is_known_by_its_bytes(tmp_path: Path, suffix: str) -> None:
    for name in (f"a.csv{suffix}", "b.csv", "c.csv.gz"):
        (tmp_path / name).write_bytes(PACK[suffix](TEXT))
        found = reads.read(tmp_path / name, tmp_path / "work")
        assert found.columns["x"] == ["1"] * 1000


@pytest.mark.parametrize("suffix", PACK)
def test_every_member_of_a_packed_file_is_read(tmp_path: Path, suffix: str) -> None:
    halves = PACK[suffix](TEXT[:1001]) + PACK[suffix](TEXT[1001:])
    (tmp_path / f"a.csv{suffix}").write_bytes(halves)
    found = reads.read(tmp_path / f"a.csv{suffix}", tmp_path / "work")
    assert found.columns["x"] == ["1"] * 1000


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize("kept", [-1, -9, 0.5])
def test_a_tail_that_is_cut_off_is_named(tmp_path: Path, suffix: str, kept: float) -> None:
    packed = PACK[suffix](b"".join(b"%d,%d\n" % (i, i * i) for i in range(10_000)))
    # A zstd stream's last byte may be one that its blocks do without.
    end = int(kept) if kept < 0 else int(len(packed) * kept)
    path = tmp_path / f"a.csv{suffix}"
    path.write_bytes(packed[:end])
    with pytest.raises(UsageError, match=r"a\.csv.* is damaged or cut off"):
        reads.read(path, tmp_path / "work")


def test_a_flipped_bit_of_a_gzip_file_is_found(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(TEXT, mtime=0))
    packed[-6] ^= 1
    (tmp_path / "a.csv.gz").write_bytes(packed)
    with pytest.raises(UsageError, match=r"a\.csv\.gz is damaged or cut off"):
        reads.read(tmp_path / "a.csv.gz", tmp_path / "work")


def test_members_of_archives_are_files_packed_or_not(tmp_path: Path) -> None:
    members = {
        "b/c d.csv": TEXT,
        "a.csv.gz": PACK[".gz"](TEXT),
        "z.zip": reads.zipped(**{"é.csv": TEXT}),
        "__MACOSX/._a.csv": b"x",
        "e.jsonl": b'{"x": "1", "y": 0}\n',
    }
    (tmp_path / "a.zip").write_bytes(reads.zipped(**members))
    options = ShardOptions(sources=(str(tmp_path / "a.zip"),), output="out", label="y")
    (file,) = inputs.find(options.sources)
    pieces = inputs.prepare(file, tmp_path / "work", options, reads.WHOLE)
    names = [piece.name.removeprefix(str(tmp_path)) for piece in pieces]
    inside = ["a.csv.gz", "b/c d.csv", "e.jsonl", "z.zip!é.csv"]
    assert names == [f"/a.zip!{name}" for name in inside]


def _encrypted() -> bytes:
    data = bytearray(reads.zipped(**{"a.csv": TEXT}))
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


def _of_one_name() -> bytes:
    return reads.zipped(**{"b.csv": TEXT, "c.csv": TEXT}).replace(b"c.csv", b"b.csv")


def _deep() -> bytes:
    data = TEXT
    for _ in range(9):
        data = gzip.compress(data)
    return data


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.zip", _encrypted(), "encrypted"),
        ("a.zip", _of_one_name(), "two members called b.csv"),
        ("a.zip", reads.zipped(), "an archive without files"),
        ("a.zip", reads.zipped(**{"b.xlsx": b"x"}), "a.zip!b.xlsx: .xlsx is not a format"),
        ("a.zip", reads.zipped(**{"b.csv": b""}), "a.zip!b.csv is empty"),
        ("a.zip", reads.zipped(**{"b.csv": TEXT})[:-30], "a.zip cannot be unpacked"),
        ("a.csv", b"PK\x03\x04" + b"1,2\n" * 99, "a.csv cannot be unpacked"),
        ("a.csv.gz", _deep(), "packed 6 times over"),
        ("a.json", b"{}", ".json is not a format that is read"),
        ("a.dat", TEXT, "--delimiter"),
    ],
)
def test_what_cannot_be_unpacked_is_said(tmp_path: Path, name: str, data: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(UsageError) as caught:
        reads.read(tmp_path / name, tmp_path / "work")
    assert said in str(caught.value)


def test_unpacking_takes_little_memory(tmp_path: Path) -> None:
    """100 MB of zeros in a few kilobytes, read by way of a file."""
    zeros = io.BytesIO()
    with (
        zipfile.ZipFile(zeros, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("a.csv", "w") as member,
    ):
        member.write(b"x,y\n")
        for _ in range(100):
            member.write(b"1,0\n" * (1 << 18))
    (tmp_path / "a.zip").write_bytes(zeros.getvalue())
    options = ShardOptions(sources=(str(tmp_path / "a.zip"),), output="out", label="y")
    (file,) = inputs.find(options.sources)
    tracemalloc.start()
    pieces = inputs.prepare(file, tmp_path / "work", options, 1 << 20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(pieces) >= 100
    assert peak < 20 << 20


def test_a_full_disk_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(PACK[".gz"](TEXT))
    with pytest.raises(UsageError, match=r"cannot unpack into /dev/full"):
        reads.read(tmp_path / "a.csv.gz", Path("/dev/full"))
    stream = unpack.Stream("a", partial(files.open_binary, str(tmp_path / "a.csv.gz")), None)
    with pytest.raises(UsageError, match=r"cannot unpack into /dev: No space left"):
        unpack.copy(stream, Path("/dev/full"), unpack.as_it_is)


def test_zlib_is_only_looked_for_in_records(tmp_path: Path) -> None:
    """Text may begin with the same two bytes."""
    (tmp_path / "a.csv").write_bytes(b"x\x01,y\n1,0\n")
    assert reads.read(tmp_path / "a.csv", tmp_path / "work").columns["x\x01"] == ["1"]
    packed = zlib.compress(reads.records(reads.example(x=[1])))
    (tmp_path / "a.tfrecord").write_bytes(packed)
    assert reads.read(tmp_path / "a.tfrecord", tmp_path / "work").columns["x"] == [1]
