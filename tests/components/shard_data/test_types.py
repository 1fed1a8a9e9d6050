"""Types are decided over the whole input; nulls, labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.components.shard_data.made import make_text, refused_text, rows


def _column(values: list[str]) -> str:
    return "x,y\n" + "".join(f"{value},{i % 2}\n" for i, value in enumerate(values))


@pytest.mark.parametrize(
    ("values", "dtype", "logical", "stored"),
    [
        (["1", " 2 ", "-3", "+4", ""], "int64", None, [1, 2, -3, 4, None]),
        (["1", "2.5", "1e3", ".5", "5."], "float32", None, [1.0, 2.5, 1000.0, 0.5, 5.0]),
        (["1600000000000001.0", "1600000000000000.0", ""], "int64", None,
         [1600000000000001, 1600000000000000, None]),
        (["1", "nan", "NaN", '""'], "int64", None, [1, None, None, None]),
        (["007", "8"], "string", None, ["007", "8"]),
        (["0", "-0", "0.5"], "float32", None, [0.0, 0.0, 0.5]),
        (["9007199254740993", "1"], "int64", None, [2**53 + 1, 1]),
        (["16777217.0", "1.0"], "int64", None, [2**24 + 1, 1]),
        (["true", "False", "TRUE", ""], "int64", "bool", [1, 0, 1, None]),
        (["true", "no"], "string", None, ["true", "no"]),
        (["1970-01-02", "1969-12-31"], "int64", "date", [1, -1]),
        (["2023-02-29", "2023-02-28"], "string", None, ["2023-02-29", "2023-02-28"]),
        (["1970-01-01T00:00:01Z", "1970-01-01 01:00:00.25+01:00", "1970-01-01 00:00"],
         "int64", "timestamp", [1_000_000, 250_000, 0]),
        (["1970-01-01T25:00:00", "1970-01-01T00:00:00"], "string", None,
         ["1970-01-01T25:00:00", "1970-01-01T00:00:00"]),
        (["1", "a", "b"], "string", None, ["1", "a", "b"]),
        (["nan", "a"], "string", None, ["nan", "a"]),
        (["1_000", "0x10"], "string", None, ["1_000", "0x10"]),
    ],
)  # fmt: skip
def test_the_values_decide_the_type(
    tmp_path: Path, values: list[str], dtype: str, logical: str | None, stored: list[Any]
) -> None:
    manifest = make_text(tmp_path, _column(values))
    assert (manifest.feature("x").dtype, manifest.feature("x").logical) == (dtype, logical)
    assert rows(tmp_path / "out")["x"] == stored


@pytest.mark.parametrize("row", [1, 90_000])
def test_a_word_among_numbers_is_an_error_wherever_it_stands(tmp_path: Path, row: int) -> None:
    values = [str(i) for i in range(100_000)]
    values[row] = "NA"
    message = refused_text(tmp_path, _column(values))
    assert f"first 'NA' ({tmp_path}/a.csv, line {row + 2})" in message
    assert "99,999 numbers and 1 other" in message
    assert "--null-value NA" in message
    assert "--type x=string" in message


@pytest.mark.parametrize(
    ("good", "bad", "what"),
    [("2024-01-02", "NA", "dates"), ("2024-01-02", "2024-13-45", "dates"),
     ("2024-01-02", "7", "dates"), ("2024-01-02T03:04:05Z", "soon", "timestamps")],
)  # fmt: skip
def test_a_word_among_dates_is_an_error(tmp_path: Path, good: str, bad: str, what: str) -> None:
    message = refused_text(tmp_path, _column([good, good, bad]))
    assert f"column x holds 2 {what} and 1 other values, first '{bad}'" in message
    assert f"line 4): if that means missing, --null-value {bad}" in message
    assert "--type x=string" in message


def test_the_remedies_work(tmp_path: Path) -> None:
    text = _column(["1", "NA", "2"])
    make_text(tmp_path, text, null_values=["NA"])
    assert rows(tmp_path / "out")["x"] == [1, None, 2]
    make_text(tmp_path, text, types=["x=string"], output=str(tmp_path / "out2"))
    assert rows(tmp_path / "out2")["x"] == ["1", "NA", "2"]


@pytest.mark.parametrize(
    ("values", "options", "said"),
    [
        (["1", "inf", "2"], {}, "--null-value inf"),
        (["1", "9223372036854775808"], {}, "beyond int64"),
        (["1", "-9223372036854775808"], {}, "beyond int64"),
        (["1", "9" * 5000], {}, "999… ("),
        (["1", "--", "2"], {}, "--null-value=--;"),
        (["1.5", "1e39"], {}, "1e39 ("),
        (["1.5", "-1e400"], {}, "beyond float32"),
        (["1", '"a\nb"', "2"], {}, "--null-value V"),
        (["1", "it's", "2"], {}, "line 3"),
        (["1", "x" * 5000, "2"], {}, "xxx…'"),
        (["1", "x"], {"types": ["x=int64"]}, "'x' ("),
        (["1.5", "2"], {"types": ["x=int64"]}, "is no int64"),
        (["a", "2"], {"types": ["x=float32"]}, "is no number"),
        (["2", "true"], {"types": ["x=bool"]}, "is no true or false"),
        (["2020-01-01", "2020-13-01"], {"types": ["x=date"]}, "'2020-13-01'"),
    ],
)
def test_what_does_not_fit_is_refused(
    tmp_path: Path, values: list[str], options: dict[str, Any], said: str
) -> None:
    assert said in refused_text(tmp_path, _column(values), **options)


@pytest.mark.parametrize(
    ("values", "kind", "stored"),
    [
        (["007", "1.0"], "int64", [7, 1]),
        (["1", "2"], "float32", [1.0, 2.0]),
        (["16777218", "2"], "float32", [16777218.0, 2.0]),
        (["1", "0"], "bool", [1, 0]),
        (["1", "2"], "string", ["1", "2"]),
        (["1970-01-02", "1970-01-03"], "string", ["1970-01-02", "1970-01-03"]),
        (["1970-01-01", "1970-01-02"], "timestamp", [0, 86_400_000_000]),
    ],
)
def test_a_declared_type_wins(
    tmp_path: Path, values: list[str], kind: str, stored: list[Any]
) -> None:
    make_text(tmp_path, _column(values), types=[f"x={kind}"])
    assert rows(tmp_path / "out")["x"] == stored


def test_the_types_of_another_dataset_are_taken(tmp_path: Path) -> None:
    make_text(tmp_path, "x,d,y\na,1970-01-01,0\nb,1970-01-02,1\n")
    make_text(
        tmp_path,
        "x,d,y\n1,1970-01-03,0\n2,,1\n",
        name="b.csv",
        output=str(tmp_path / "again"),
        schema_file=str(tmp_path / "out/schema.pbtxt"),
    )
    found = rows(tmp_path / "again")
    assert found["x"] == ["1", "2"]
    assert found["d"] == [2, None]


def test_moments_close_together_have_statistics(tmp_path: Path) -> None:
    make_text(tmp_path, _column(["2020-01-01T00:00:00Z", "2020-01-01T00:00:00.000001Z"]))
    make_text(tmp_path, _column(["2020-01-01T00:00Z"] * 4), output=str(tmp_path / "same"))
    for output, count in (("out", 2), ("same", 4)):
        found = json.loads((tmp_path / output / "statistics.json").read_text())
        figures = found["splits"]["train"]["features"]["x"]
        assert sum(figures["histogram_counts"]) == count
        assert len(figures["histogram_edges"]) == len(figures["histogram_counts"]) + 1


def test_null_values_hold_everywhere_or_in_one_column(tmp_path: Path) -> None:
    text = 'a,b,y\n?,?,0\n-1,-1,1\n"?",k=v,0\n 5 ,u,1\n6,w,1\n'
    make_text(tmp_path, text, null_values=["?", "a=-1", "=k=v"])
    found = rows(tmp_path / "out")
    assert found["a"] == [None, None, None, 5, 6]
    assert found["b"] == [None, "-1", None, "u", "w"]


def test_what_is_left_out_or_odd_is_said(tmp_path: Path) -> None:
    text = "zip,void,same,close,y\n01,,1,0.1,0\n02,,1,0.100000001,1\n"
    manifest = make_text(tmp_path, text)
    assert [e["name"] for e in manifest.dropped] == ["void"]
    said = " / ".join(manifest.notes)
    assert "column zip is text: '01' begins with a zero" in said
    assert "column same has the same value" in said
    assert "column close is stored as float32: 2 different numbers become 1" in said


@pytest.mark.parametrize(
    ("values", "options", "kind", "classes"),
    [
        (["0", "1"] * 5, {}, "binary", (0, 1)),
        (["5.0", "2.0"] * 5, {}, "binary", (2, 5)),
        (["true", "false"] * 5, {}, "binary", (0, 1)),
        (["yes", "no"] * 5, {}, "binary", ("no", "yes")),
        (["b", "a", "c"] * 5, {}, "multiclass", ("a", "b", "c")),
        (["3", "1", "2"] * 5, {}, "multiclass", (1, 2, 3)),
        (["3", "1", "2"], {}, "regression", None),
        (["3", "1", "2"], {"label_kind": "multiclass"}, "multiclass", (1, 2, 3)),
        (["1.5", "2.5"] * 5, {}, "regression", None),
        (["1", "2"] * 5, {"label_kind": "regression"}, "regression", None),
        ([str(i) for i in range(101)] * 6, {}, "regression", None),
    ],
)
def test_the_label_says_what_it_is(
    tmp_path: Path, values: list[str], options: dict[str, Any], kind: str, classes: Any
) -> None:
    text = "x,y\n" + "".join(f"{i},{value}\n" for i, value in enumerate(values))
    label = make_text(tmp_path, text, **options).label
    assert (label.kind, label.classes) == (kind, classes)


@pytest.mark.parametrize(
    ("values", "kind", "said"),
    [
        (["a", "b", "c"], "binary", "has 3 values"),
        (["a", "b", "c"], "regression", "is text"),
        (["1.5", "2", "3"], "multiclass", "has fractions"),
    ],
)
def test_a_label_kind_that_does_not_fit_is_refused(
    tmp_path: Path, values: list[str], kind: str, said: str
) -> None:
    text = "x,y\n" + "".join(f"{i},{value}\n" for i, value in enumerate(values))
    assert said in refused_text(tmp_path, text, label_kind=kind)


def test_a_text_label_has_a_dictionary_of_its_classes(tmp_path: Path) -> None:
    text = "x,y\n" + "".join(f"{i},c{i % 5000:04d}\n" for i in range(10_000))
    manifest = make_text(tmp_path, text, label_kind="multiclass")
    assert manifest.feature("y").dictionary == manifest.label.classes
    assert len(manifest.label.classes or ()) == 5000


def test_rows_without_label_are_left_out_when_allowed(tmp_path: Path) -> None:
    manifest = make_text(tmp_path, "x,y\na,0\nb,\nc,1\n", drop_missing_label=True)
    found = rows(tmp_path / "out")
    assert found["x"] == ["a", "c"]
    assert found["row_id"] == [0, 2]
    assert manifest.feature("x").dictionary == ("a", "c")
    assert manifest.dropped == ({"what": "rows", "rows": 1, "reason": "label y is missing"},)
