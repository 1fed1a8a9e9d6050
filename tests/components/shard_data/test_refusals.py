"""Every bad input: one line, exit 2, nothing half-written."""

from __future__ import annotations

import gzip
import io
import os
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.components.shard_data.made import make, refusal, refused_text, write

GOOD = "x,y\n1,0\n2,1\n3,0\n4,1\n"


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        pytest.param("", {}, ["a.csv is empty"], id="empty file"),
        pytest.param("\n\n", {}, ["a.csv is empty"], id="blank file"),
        pytest.param("x,y\n", {}, ["a.csv has a header and no rows"], id="header only"),
        pytest.param("x,y\n1,0\n2\n3,1\n", {}, ["a.csv, line 3: 1 fields, the header has 2",
                     "--max-bad-rows"], id="ragged row"),
        pytest.param('x,y\n\n"a\nb",0\n2,1,5\n', {}, ["line 5: 3 fields"], id="ragged line number"),
        pytest.param("#1\nx,y\n1,0\n#\n2\n", {"comment": "#"}, ["line 5"], id="ragged, comments"),
        pytest.param("x,y\n1\n2,1,5\n1,2\n", {"max_bad_rows": 1}, ["line 3"], id="too many bad"),
        pytest.param("x,x,y\n1,2,0\n", {}, ["2 columns called 'x'"], id="duplicate column"),
        pytest.param("x,z\n1,2\n", {}, ["--label y: ", "no such column", "it has x, z"],
                     id="label missing"),
        pytest.param("x,yy\n1,2\n", {"label": "yyy"}, ["did you mean 'yy'?"], id="label near"),
        pytest.param("x,y\n1,1\n2,1\n", {}, ["label y has one value (1) in all 2 rows"],
                     id="one class"),
        pytest.param("x,y\n1,a\n2,a\n", {}, ["label y has one value (a)"], id="one text class"),
        pytest.param("x,y\n1,\n2,\n", {}, ["label y has no value in any of the 2 rows"],
                     id="label empty"),
        pytest.param("x,y\n1,0\n2,\n3,1\n", {}, ["label y is missing in 1 of 3 rows",
                     "--drop-missing-label"], id="label missing in a row"),
        pytest.param("y\n1\n0\n", {}, ["no column beside the label"], id="label alone"),
        pytest.param("x;y\n1;0\n2;1\n", {}, ["has one column", "--delimiter ';'"],
                     id="semicolons"),
        pytest.param("x\ty\n1\t0\n", {}, ["--delimiter '\\t'"], id="tabs in a .csv"),
        pytest.param("x;y\n1,5;0\n2,5;1\n", {"delimiter": ";"}, ["--decimal ','"],
                     id="decimal commas"),
        pytest.param(b"x,y\n1,0\ncaf\xe9,1\n", {}, ["a.csv, line 3: byte 0xe9 is not utf-8",
                     "--encoding latin-1"], id="latin-1"),
        pytest.param("x,y\n1,0\n".encode("utf-16"), {}, ["--encoding utf-16"], id="utf-16"),
        pytest.param('x,y\n1,0\n"2,1\n3,0\n4,1\n', {}, ["line 3", "never ends"],
                     id="open quote"),
        pytest.param('x,y\n1,0\n2,"1\n3,0\n', {}, ["line 3", "never ends"],
                     id="open quote in the last column"),
        pytest.param("x,,y\n1,5,0\n2,6,1\n", {}, ["column 2 has no name"], id="nameless column"),
        pytest.param(GOOD, {"drop": ["z"]}, ["--drop z: "], id="unknown drop"),
        pytest.param(GOOD, {"types": ["z=int64"]}, ["--type z: "], id="unknown typed"),
        pytest.param(GOOD, {"types": ["x=int65"]}, ["--type", "x=int65", "float32"],
                     id="unknown type"),
        pytest.param(GOOD, {"types": {"x": ["int64"]}}, ["--type", "float32"], id="listed type"),
        pytest.param(GOOD, {"null_values": ["a=b"]}, ["--null-value a: ", "=a="],
                     id="null of an unknown column"),
        pytest.param(GOOD, {"split_by": "z"}, ["--split-by z: "], id="unknown split-by"),
        pytest.param(GOOD, {"drop": ["y"]}, ["--drop y: the label"], id="label dropped"),
        pytest.param(GOOD, {"split": "train=0.9,test=0.2"}, ["--split", "add up to 1"],
                     id="fractions"),
        pytest.param(GOOD, {"split": "a=1"}, ["called train"], id="no train"),
        pytest.param(GOOD, {"split": "train"}, ["--split", "NAME=VALUE"], id="split text"),
        pytest.param(GOOD, {"split": "train=0.99,test=0.01"}, ["split test would have none"],
                     id="empty split that was asked for"),
        pytest.param(GOOD, {"shards": 5}, ["--shards (5)", "4 rows"], id="shards over rows"),
        pytest.param(GOOD, {"shards": 0}, ["--shards (0)"], id="no shards"),
        pytest.param(GOOD, {"layout": "columns"}, ["--layout (columns)"], id="layout"),
        pytest.param(GOOD, {"memory": "4XB"}, ["--memory (4XB)", "4GiB"], id="memory text"),
        pytest.param(GOOD, {"memory": "4B"}, ["--memory"], id="memory exceeded"),
        pytest.param(GOOD, {"delimiter": "::"}, ["--delimiter (::)"], id="long delimiter"),
        pytest.param(GOOD, {"encoding": "utf-9"}, ["--encoding (utf-9)"], id="encoding"),
        pytest.param(GOOD, {"decimal": ",", "thousands": ","}, ["--thousands and --decimal"],
                     id="marks"),
        pytest.param(GOOD, {"processes": "many"}, ["--processes (many)"], id="not a number"),
        pytest.param(GOOD, {"schema_file": "/nowhere"}, ["--schema /nowhere"], id="no schema"),
        pytest.param(GOOD, {"schema_file": "/"}, ["--schema /: "], id="schema is a directory"),
        pytest.param(GOOD, {"encoding": "hex"}, ["--encoding (hex)"], id="no text encoding"),
        pytest.param('"x,y\n1,0\n2,1\n' + "3,0\n" * 50_000, {}, ["line 1", "never ends"],
                     id="open quote in the header"),
        pytest.param(GOOD, {"output": "gs://b/d"}, ["--output gs://b/d"], id="remote output"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_leaves_nothing(
    tmp_path: Path, text: str | bytes, options: dict[str, Any], said: list[str]
) -> None:
    message = refused_text(tmp_path, text, **options)
    for part in said:
        assert part in message


@pytest.mark.parametrize("source", ["nowhere.csv", "no*.csv", "folder"])
def test_a_source_that_is_not_there_is_named(tmp_path: Path, source: str) -> None:
    (tmp_path / "folder").mkdir()
    assert f"no such source: {tmp_path / source}" in refusal(tmp_path, tmp_path / source)


@pytest.mark.parametrize("name", ["a.xlsx", "a.orc", "a.avro", "a.npz"])
def test_a_format_that_is_not_read_is_named(tmp_path: Path, name: str) -> None:
    message = refused_text(tmp_path, GOOD, name)
    assert Path(name).suffix in message
    assert ".parquet" in message


def test_an_unknown_suffix_asks_for_the_delimiter(tmp_path: Path) -> None:
    assert "--delimiter" in refused_text(tmp_path, GOOD, "a.dat")


def test_a_file_named_twice_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "in/a.csv", GOOD)
    assert "given twice" in refusal(tmp_path, path.parent, path)


def test_an_empty_source_is_not_this_folder(tmp_path: Path) -> None:
    assert "a source is empty text" in refusal(tmp_path, "")


def test_what_is_no_file_in_a_folder_is_passed_over(tmp_path: Path) -> None:
    write(tmp_path / "in/a.csv", GOOD)
    os.mkfifo(tmp_path / "in/b.csv")
    assert make(tmp_path, tmp_path / "in").rows == 4


def test_members_of_one_name_are_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("b.csv", GOOD)
        archive.writestr("c.csv", GOOD)
    data = buffer.getvalue().replace(b"c.csv", b"b.csv")
    assert "two members called b.csv" in refused_text(tmp_path, data, "a.zip")


def _zip_of_broken() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.csv", GOOD * 100)
    data = bytearray(buffer.getvalue())
    data[45] ^= 0xFF
    return bytes(data)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.csv.gz", gzip.compress(GOOD.encode() * 100, mtime=0)[:-20]),
        ("a.zip", _zip_of_broken()),
        ("a.csv", b"BZh91AY&SY"),
        ("a.parquet", b"PAR1 and then something else"),
        ("a.parquet", b""),
        ("a.parquet", b"x,y\n1,2\n"),
    ],
)
def test_damaged_files_are_named(tmp_path: Path, name: str, data: bytes) -> None:
    assert name in refused_text(tmp_path, data, name)


def test_several_files_must_have_the_same_columns(tmp_path: Path) -> None:
    write(tmp_path / "in/a.csv", GOOD)
    write(tmp_path / "in/b.csv", "x,y,z\n1,0,5\n")
    message = refusal(tmp_path, tmp_path / "in")
    assert "b.csv has column 'z' that" in message
    assert "--missing-columns null" in message
    write(tmp_path / "in/b.csv", "y\n1\n")
    assert "b.csv lacks column 'x'" in refusal(tmp_path, tmp_path / "in")


def test_typed_files_must_have_the_same_types(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name, column in (("a", ["1", "2"]), ("b", [1, 2])):
        parquet.write_table(pa.table({"x": column, "y": [0, 1]}), tmp_path / f"in/{name}.parquet")
    message = refusal(tmp_path, tmp_path / "in")
    assert "'x' is string" in message
    assert "int64" in message
    assert "b.parquet" in message


def test_text_and_typed_files_do_not_mix(tmp_path: Path) -> None:
    write(tmp_path / "in/a.csv", GOOD)
    parquet.write_table(pa.table({"x": [1], "y": [0]}), tmp_path / "in/b.parquet")
    assert "one kind at a time" in refusal(tmp_path, tmp_path / "in")


def test_a_name_that_no_header_has_is_told_before_rows_are_read(tmp_path: Path) -> None:
    source = write(tmp_path / "a.csv", GOOD + "1,2,3,4\n")
    assert "--label z: " in refusal(tmp_path, source, label="z")
