"""What is read out of files, however they are written and packed."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.components.shard_data.made import make, make_text, refusal, rows, write

BODY = "x,y\n1,0\n2,1\n"


def _zip(**members: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "x"),
    [
        ("a.csv", BODY.encode(), [1, 2]),
        ("a.csv", b"\xef\xbb\xbf" + BODY.encode(), [1, 2]),
        ("a.csv", BODY.replace("\n", "\r\n").encode(), [1, 2]),
        ("a.csv", BODY.replace("\n", "\r").encode(), [1, 2]),
        ("a.csv", BODY.rstrip().encode(), [1, 2]),
        ("a.csv", BODY.replace("\n", "\n\n").encode(), [1, 2]),
        ("a.tsv", BODY.replace(",", "\t").encode(), [1, 2]),
        ("a.csv.gz", gzip.compress(BODY.encode(), mtime=0), [1, 2]),
        ("a.csv", gzip.compress(BODY.encode(), mtime=0), [1, 2]),
        ("a.csv.gz", BODY.encode(), [1, 2]),
        (
            "a.csv.gz",
            gzip.compress(b"x,y\n1,0\n2", mtime=0) + gzip.compress(b",1\n3,1\n", mtime=0),
            [1, 2, 3],
        ),
        ("a.zip", _zip(**{"b.csv": "x,y\n3,1\n", "a.csv": BODY, "_m/a.csv": "z"}), [1, 2, 3]),
        ("a.zip", _zip(**{"in/a.tsv": "x\ty\n1\t0\n2\t1\n"}), [1, 2]),
    ],
)
def test_however_packed_the_rows_are_the_same(
    tmp_path: Path, name: str, data: bytes, x: list[int]
) -> None:
    make_text(tmp_path, data, name)
    found = rows(tmp_path / "out")
    assert found["x"] == x
    assert found["row_id"] == list(range(len(x)))


@pytest.mark.parametrize(
    ("text", "options", "x"),
    [
        ('x,y\n"a,b",0\n"c""d",1\n', {}, ["a,b", 'c"d']),
        ('x,y\n"a\r\nb",0\n"c\n\nd",1\n', {}, ["a\r\nb", "c\n\nd"]),
        ('x,y\n5" pipe,0\na "b" c,1\n', {}, ['5" pipe', 'a "b" c']),
        ("x,y\n a ,0\nb,1\n", {}, [" a ", "b"]),
        ('x,y\n"",0\nb,1\n,0\n', {}, ["", "b", None]),
        ("x;y\n1,5;0\n-2,25;1\n", {"delimiter": ";", "decimal": ","}, [1.5, -2.25]),
        ("x\ty\n1\t0\n2\t1\n", {"delimiter": "\\t"}, [1, 2]),
        ('x,y\n"1,234",0\n"12,345,678",1\n7,1\n', {"thousands": ","}, [1234, 12345678, 7]),
        ("x;y\n1.234,5;0\n2;1\n", {"delimiter": ";", "decimal": ",", "thousands": "."},
         [1234.5, 2.0]),
        ("about\nmore\nx,y\n1,0\n2,1\n", {"skip_rows": 2}, [1, 2]),
        ('#a\nx,y\n#b\n"c\n#d",0\n5" #e,1\n#f\n', {"comment": "#"}, ["c\n#d", '5" #e']),
        ("x,y\né,0\nß,1\n".encode("latin-1"), {"encoding": "latin-1"}, ["é", "ß"]),
        ("x,y\né,0\nß,1\n".encode("utf-16"), {"encoding": "utf-16"}, ["é", "ß"]),
        ("x|y\n1|0\n2|1\n", {"delimiter": "|"}, [1, 2]),
    ],
)  # fmt: skip
def test_text_is_read_as_the_flags_say(
    tmp_path: Path, text: str | bytes, options: dict[str, Any], x: list[Any]
) -> None:
    make_text(tmp_path, text, **options)
    assert rows(tmp_path / "out")["x"] == x


def test_bad_rows_that_are_allowed_are_left_out_and_counted(tmp_path: Path) -> None:
    manifest = make_text(tmp_path, "x,y\n1,0\n2\n3,1,1\n4,1\n", max_bad_rows=2)
    found = rows(tmp_path / "out")
    assert found["x"] == [1, 4]
    assert found["row_id"] == [0, 3]
    assert manifest.dropped[0]["rows"] == 2


def test_a_nameless_index_is_kept_out_and_said(tmp_path: Path) -> None:
    manifest = make_text(tmp_path, ",x,y,\n0,1,0,\n1,2,1,\n")
    assert [f.name for f in manifest.features] == ["x", "y"]
    assert [entry["name"] for entry in manifest.dropped] == ["#1", "#4"]


def test_a_quoted_field_over_many_lines_is_said(tmp_path: Path) -> None:
    text = "\n".join("abcdefghijklm")
    manifest = make_text(tmp_path, f'x,y\n"{text}",0\nb,1\n')
    assert any("13 lines" in note for note in manifest.notes)


def test_folders_and_globs_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name, x in (("b", 2), ("a", 1), ("sub/c", 3), (".hidden", 8), ("_tmp/d", 9)):
        write(tmp_path / f"in/{name}.csv", f"y,x\n{x % 2},{x}\n")
    make(tmp_path, tmp_path / "in")
    assert rows(tmp_path / "out")["x"] == [1, 2, 3]
    make(tmp_path, tmp_path / "in/*.csv", output=str(tmp_path / "out2"))
    assert rows(tmp_path / "out2")["x"] == [1, 2]


def test_columns_of_several_files_go_by_name(tmp_path: Path) -> None:
    write(tmp_path / "in/a.csv", "x,y\n1,0\n")
    write(tmp_path / "in/b.csv", "y,z,x\n1,5,2\n")
    make(tmp_path, tmp_path / "in", missing_columns="null")
    found = rows(tmp_path / "out")
    assert found["x"] == [1, 2]
    assert found["z"] == [None, 5]


def test_a_file_with_a_header_only_among_others_is_said(tmp_path: Path) -> None:
    write(tmp_path / "in/a.csv", "x,y\n")
    write(tmp_path / "in/b.csv", BODY)
    manifest = make(tmp_path, tmp_path / "in")
    assert any("a.csv has a header and no rows" in note for note in manifest.notes)


def test_hive_folders_are_columns_of_text(tmp_path: Path) -> None:
    for folder in ("c=01", "c=a%2Fb", "c=__HIVE_DEFAULT_PARTITION__"):
        write(tmp_path / f"in/{folder}/p.csv", BODY)
    make(tmp_path, tmp_path / "in")
    assert rows(tmp_path / "out")["c"] == ["01"] * 2 + [None] * 2 + ["a/b"] * 2


def test_parquet_keeps_its_declared_types(tmp_path: Path) -> None:
    table = pa.table(
        {
            "text": pa.array(["007", None, "x"]),
            "day_text": pa.array(["2020-01-01"] * 3),
            "big": pa.array([2**60, None, 1]),
            "real": pa.array([1.5, float("nan"), None]),
            "flag": pa.array([True, None, False]),
            "day": pa.array([0, 1, None], pa.date32()),
            "time": pa.array([1_500, None, 2_000], pa.timestamp("ns")),
            "whole": pa.array([1, 2, None]).cast(pa.decimal128(20, 0)),
            "coded": pa.array(["a", "b", None]).dictionary_encode(),
            "in": pa.array([{"a": 1, "b": "u"}, None, {"a": 2, "b": "v"}]),
            "empty": pa.nulls(3),
            "list": pa.array([[1, 2], [], None]),
            "pair": pa.array([[1.0, 2.0], [0.0, 5.0], [3.0, 4.0]], pa.list_(pa.float32(), 2)),
            "words": pa.array([["a"], ["b", "a"], None]),
            "y": pa.array([0, 1, 1]),
        }
    )
    (tmp_path / "in").mkdir()
    parquet.write_table(table, tmp_path / "in/a.parquet")
    manifest = make(tmp_path, tmp_path / "in")
    found = rows(tmp_path / "out")
    assert found["text"] == ["007", None, "x"]
    assert found["day_text"] == ["2020-01-01"] * 3
    assert found["big"] == [2**60, None, 1]
    assert found["real"] == [1.5, None, None]
    assert found["flag"] == [1, None, 0]
    assert found["day"] == [0, 1, None]
    assert found["time"] == [1, None, 2]
    assert found["whole"] == [1, 2, None]
    assert found["coded"] == ["a", "b", None]
    assert found["in.a"] == [1, None, 2]
    assert found["in.b"] == ["u", None, "v"]
    assert found["list"] == [[1, 2], [], None]
    assert found["pair"] == [[1.0, 2.0], [0.0, 5.0], [3.0, 4.0]]
    assert found["words"] == [["a"], ["b", "a"], None]
    assert manifest.feature("pair").shape == (2,)
    assert manifest.feature("flag").logical == "bool"
    assert any("finer than microseconds" in note for note in manifest.notes)
    assert {"what": "column", "name": "empty", "reason": "it has no value in any row"} in (
        manifest.dropped
    )


def test_parquet_numbers_can_be_named_null_and_retyped(tmp_path: Path) -> None:
    table = pa.table({"a": [-1, 5, 6], "b": [1, 2, 3], "c": ["1", "2", "x"], "y": [0, 1, 1]})
    parquet.write_table(table, tmp_path / "a.parquet")
    make(tmp_path, tmp_path / "a.parquet", null_values=["a=-1", "c=x"],
         types=["b=string", "c=int64"])  # fmt: skip
    found = rows(tmp_path / "out")
    assert found["a"] == [None, 5, 6]
    assert found["b"] == ["1", "2", "3"]
    assert found["c"] == [1, 2, None]


def test_a_fraction_names_no_whole_number_null(tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2, 3], "b": [1.5, 2.5, 1.0], "y": [0, 1, 0]})
    parquet.write_table(table, tmp_path / "a.parquet")
    make(tmp_path, tmp_path / "a.parquet", null_values=["1.5", "1e30"])
    found = rows(tmp_path / "out")
    assert found["a"] == [1, 2, 3]
    assert found["b"] == [None, 2.5, 1.0]


@pytest.mark.parametrize("kind", [pa.timestamp("ms"), pa.duration("s")])
def test_moments_beyond_microseconds_are_refused(tmp_path: Path, kind: pa.DataType) -> None:
    table = pa.table({"a": pa.array([9 * 10**17, 1], kind), "y": [0, 1]})
    parquet.write_table(table, tmp_path / "a.parquet")
    assert "beyond what" in refusal(tmp_path, tmp_path / "a.parquet")


def test_integers_and_floats_of_parquet_files_unify(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name, x in (("a", pa.array([1])), ("b", pa.array([2.5])), ("c", pa.nulls(1))):
        parquet.write_table(pa.table({"x": x, "y": [len(name) % 2]}), tmp_path / f"in/{name}.pq")
    parquet.write_table(pa.table({"x": [3.0], "y": [0]}), tmp_path / "in/d.pq")
    make(tmp_path, tmp_path / "in")
    assert rows(tmp_path / "out")["x"] == [1.0, 2.5, None, 3.0]


def test_lists_that_are_all_empty_go_with_any_others(tmp_path: Path) -> None:
    write(tmp_path / "in/a.jsonl", '{"tags": [], "n": [], "y": 0}\n{"tags": [], "n": [], "y": 1}\n')
    write(tmp_path / "in/b.jsonl", '{"tags": ["a"], "n": [0.5], "y": 0}\n')
    make(tmp_path, tmp_path / "in")
    assert rows(tmp_path / "out")["tags"] == [[], [], ["a"]]
    assert rows(tmp_path / "out")["n"] == [[], [], [0.5]]
