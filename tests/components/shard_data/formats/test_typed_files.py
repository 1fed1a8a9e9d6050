"""Parquet and Arrow: declared types, and one line where a file is damaged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tests.components.shard_data.formats import reads
from trainer.errors import UsageError

FILES: dict[str, Callable[[pa.Table], bytes]] = {
    "a.parquet": reads.as_parquet,
    "a.feather": reads.as_feather,
    "a.arrow": lambda table: reads.as_stream(table, 7),
}


@pytest.mark.parametrize("name", FILES)
def test_types_are_the_declared_ones(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(FILES[name](reads.table()))
    found = reads.read(tmp_path / name, tmp_path / "work", places=True)
    types = {column: next(iter(kinds)) for column, kinds in found.types.items()}
    assert types["x"] == pa.int64()
    assert types["in.a"] == pa.int64()
    assert types["in.b"] == pa.list_(pa.int64()) or types["in.b"].value_type == pa.int64()
    assert types["time"] == pa.timestamp("ms", "UTC")
    assert types["half"] == pa.float16()
    assert types["whole"] == pa.decimal128(20, 0)
    assert pa.types.is_dictionary(types["coded"])
    assert found.columns["text"][3] is None
    assert found.places[-1] == "row 20"


@pytest.mark.parametrize("name", FILES)
def test_a_file_without_rows_has_its_columns(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(FILES[name](reads.table().slice(0, 0)))
    found = reads.read(tmp_path / name, tmp_path / "work")
    assert found.rows == 0
    assert found.columns["in.a"] == []


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("kept", [0, 0.3, 0.9])
def test_a_damaged_file_is_named(tmp_path: Path, name: str, kept: float) -> None:
    data = FILES[name](reads.table())
    (tmp_path / name).write_bytes(data[: int(len(data) * kept)])
    with pytest.raises(UsageError, match=name):
        reads.read(tmp_path / name, tmp_path / "work")


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])
    (tmp_path / "a.arrow").write_bytes(reads.as_stream(table, 1))
    with pytest.raises(UsageError, match="2 columns called 'x'"):
        reads.read(tmp_path / "a.arrow", tmp_path / "work")


def test_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    bad = pa.array([b"a", b"\xff"]).view(pa.string())
    for name, write in FILES.items():
        (tmp_path / name).write_bytes(write(pa.table({"x": bad})))
        with pytest.raises(UsageError, match=f"{name} is damaged.*UTF8"):
            reads.read(tmp_path / name, tmp_path / "work")


@pytest.mark.filterwarnings("ignore:Feather V1")
def test_feather_of_version_1_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.feather").write_bytes(reads.as_feather(pa.table({"x": [1]}), version=1))
    with pytest.raises(UsageError, match="version 1: write it as version 2"):
        reads.read(tmp_path / "a.feather", tmp_path / "work")


def test_the_index_of_pandas_is_left_out_and_said(tmp_path: Path) -> None:
    table = pa.table({"x": [1], "__index_level_0__": [5]})
    (tmp_path / "a.parquet").write_bytes(reads.as_parquet(table))
    found = reads.read(tmp_path / "a.parquet", tmp_path / "work")
    assert list(found.columns) == ["x"]
    assert found.say.dropped[0]["name"] == "__index_level_0__"


def test_a_format_is_known_by_its_bytes(tmp_path: Path) -> None:
    for name, data in (
        ("a", reads.as_parquet(reads.table())),
        ("b.csv", reads.as_feather(reads.table())),
    ):
        (tmp_path / name).write_bytes(data)
        assert reads.read(tmp_path / name, tmp_path / "work").rows == 20
