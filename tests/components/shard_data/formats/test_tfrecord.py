"""TFRecord files of tf.train.Example: scalars and lists over the whole file, and named damage."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import pyarrow as pa
import pytest

from tests.components.shard_data.formats import reads
from tests.components.shard_data.formats.reads import example, records
from trainer.errors import UsageError

SOUND = [
    example(n=[1], f=[0.5], s=[b"a"], v=[1], e=[]),
    example(n=[2], s=[b"\xff"], v=[]),
    example(n=[-3], f=[1.5], v=[1, 2], none=None),
]


@pytest.mark.parametrize("piece_bytes", [1, 60, reads.WHOLE])
def test_what_has_one_value_at_most_is_a_scalar(tmp_path: Path, piece_bytes: int) -> None:
    (tmp_path / "a.tfrecord").write_bytes(records(*SOUND))
    found = reads.read(tmp_path / "a.tfrecord", tmp_path / "work", piece_bytes, places=True)
    assert found.columns == {
        "e": [[], None, None],
        "f": [0.5, None, 1.5],
        "n": [1, 2, -3],
        "none": [None] * 3,
        "s": [b"a", b"\xff", None],
        "v": [[1], [], [1, 2]],
    }
    assert found.types["f"] == {pa.float32()}
    assert found.types["v"] == {pa.large_list(pa.int64())}
    assert found.places == ["record 1", "record 2", "record 3"]


@pytest.mark.parametrize(
    ("name", "packed"),
    [
        ("a.tfrecord", False), ("part-00000", False), ("a.tfrecord-00000-of-00002", False),
        ("a.tfrecord.gz", gzip.compress), ("data_tfrecord-0", gzip.compress),
        ("a.tfrecords", zlib.compress),
    ],
)  # fmt: skip
def test_records_are_known_by_their_checksum(tmp_path: Path, name: str, packed: object) -> None:
    data = records(*SOUND)
    (tmp_path / name).write_bytes(packed(data) if callable(packed) else data)
    assert reads.read(tmp_path / name, tmp_path / "work").columns["n"] == [1, 2, -3]


def test_a_file_without_records_has_no_rows(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(b"")
    assert reads.read(tmp_path / "a.tfrecord", tmp_path / "work").rows == 0


def _flipped(at: int) -> bytes:
    data = bytearray(records(*SOUND))
    data[at] ^= 1
    return bytes(data)


SECOND = len(records(SOUND[0]))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (records(*SOUND)[:-1], "record 3: is cut off"),
        (records(*SOUND)[: SECOND + 5], "record 2: is cut off in its header"),
        (_flipped(SECOND), "record 2: the checksum of its length differs"),
        (_flipped(SECOND + 20), "record 2: its checksum differs"),
        (records(SOUND[0], b"no example"), "record 2: not a tf.train.Example"),
        (records(*SOUND, example(n=[0.5])), "record 4: feature 'n' has float values, and int64"),
        (records(*SOUND, example(s=[7])), "record 4: feature 's' has int64 values, and binary"),
        (b"no records at all", "record 1: the checksum of its length differs"),
    ],
)
@pytest.mark.parametrize("piece_bytes", [1, reads.WHOLE])
def test_the_record_at_fault_is_named(
    tmp_path: Path, data: bytes, said: str, piece_bytes: int
) -> None:
    (tmp_path / "a.tfrecord").write_bytes(data)
    with pytest.raises(UsageError) as caught:
        reads.read(tmp_path / "a.tfrecord", tmp_path / "work", piece_bytes)
    assert f"a.tfrecord, {said}" in str(caught.value)


def test_a_file_cut_between_records_has_the_rows_before(tmp_path: Path) -> None:
    """Nothing in the file tells how many there were."""
    (tmp_path / "a.tfrecord").write_bytes(records(*SOUND)[:SECOND])
    assert reads.read(tmp_path / "a.tfrecord", tmp_path / "work").rows == 1
