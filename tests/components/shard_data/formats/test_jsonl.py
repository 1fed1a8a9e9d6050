"""JSON lines: exact, typed, and refused where kinds do not go together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from components.shard_data.formats import Piece, json_rows, jsonl
from components.shard_data.options import ShardOptions
from tests.components.shard_data.formats import reads
from trainer.errors import UsageError


def read(tmp_path: Path, text: str | bytes, **options: Any) -> reads.All:
    path = tmp_path / "a.jsonl"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return reads.read(path, tmp_path / "work", places=True, **options)


def test_text_stays_text_and_objects_become_columns(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        '{"day": "2020-01-01", "n": 7, "o": {"p": {"q": true}, "l": [[1], []]}}\n'
        '\n  \t\r\n{"day": "2020-01-01 10:00:00", "o": null, "new": 0.5}\r\n',
    )
    assert found.columns == {
        "day": ["2020-01-01", "2020-01-01 10:00:00"],
        "n": [7, None],
        "o.p.q": [True, None],
        "o.l": [[[1], []], None],
        "new": [None, 0.5],
    }
    assert found.places == ["line 1", "line 4"]


@pytest.mark.parametrize(
    ("text", "x"),
    [
        ('{"x": 9007199254740993}\n{"x": 1}', [2**53 + 1, 1]),
        ('{"x": -9223372036854775808}\n{"x": 9223372036854775807}', [-(2**63), 2**63 - 1]),
        ('{"x": 9007199254740992}\n{"x": 0.5}', [2.0**53, 0.5]),
        ('{"x": NaN}\n{"x": 3}', [None, 3]),
        ('{"x": NaN}\n{"x": "NaN"}', [None, "NaN"]),
        ('{"x": 1e2}\n{"x": 3}', [100.0, 3.0]),
        ('{"x": "\\ud83d\\ude00\\u0000"}', ["😀\0"]),
        ('\ufeff{"x": 1}', [1]),
        ('{"x": []}\n{"x": [1, 2.5]}', [[], [1.0, 2.5]]),
        ('{"x": {"y": 1}}\n{"x.y": 2}', None),
    ],
)
def test_values_are_exact(tmp_path: Path, text: str, x: list[Any] | None) -> None:
    found = read(tmp_path, text).columns
    assert found == ({"x": x} if x is not None else {"x.y": [1, 2]})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ["a.jsonl is empty"]),
        ("\n \n", ["a.jsonl is empty"]),
        ('{"x": 9223372036854775808}', ["column x: 9223372036854775808", "line 1", "int64"]),
        ('{"x": 0.5}\n{"x": 9007199254740993}', ["column x: 9007199254740993", "line 2", "2^53"]),
        ('{"x": [0.5, 9007199254740993]}', ["column x", "line 1", "2^53"]),
        ('{"x": 1}\n{"x": "a"}', ["column x is a number", "line 1", 'text ("a"', "line 2"]),
        ('{"x": 1}\n{"x": true}', ["a number", "true or false", "line 2"]),
        ('{"x": [1]}\n{"x": 2}', ["a list", "a number", "line 2"]),
        ('{"x": [1, "a"]}', ["a number", "text", "line 1"]),
        ('{"x": {"y": 1}}\n{"x": 2}', ["column x is a number", "line 2", "an object", "line 1"]),
        ('{"x": [{"y": 1}]}', ["column x: a list of objects", "line 1"]),
        ('{"x": 1}\n{"x": 1', ["a.jsonl, line 2: not JSON", "--max-bad-rows"]),
        ('{"x": 1} {"x": 2}', ["line 1: not JSON"]),
        ('{"x": 1}{"x": 2}\n{"x":\n3}', ["line 1: not JSON"]),
        ('[{"x": 1}]', ["line 1: a list, not an object"]),
        ('{"x": 1, "x": 2}', ["line 1: the key 'x' stands twice"]),
        ('{"o": {"x": 1, "x": 2}}', ["the key 'x' stands twice"]),
        ('{"o": {"x": 1}, "o.x": 2}', ["the key 'o.x' stands twice"]),
        ('{"": 1}', ["a key is empty"]),
        ('{"x": "\\ud800"}', ["line 1: half of a surrogate pair"]),
        ('{"\\udc00": 1}', ["half of a surrogate pair"]),
        ('{"x": 007}', ["line 1: not JSON"]),
        ('{"x": ' + "1" * 5000 + "}", ["line 1"]),
        ('{"x": ' + "[" * 100_000 + "]" * 100_000 + "}", ["line 1: nested too deep"]),
        (b'{"x": 1}\n{"x": "caf\xe9"}', ["line 2: byte 0xe9 is not utf-8", "latin-1"]),
        (b'{"x": 1}\n{"x": "\xed\xa0\x80"}', ["line 2: byte 0xed"]),
        ('{"x": 1}\n'.encode("utf-16"), ["--encoding utf-16"]),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, text: str | bytes, said: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, text)
    for part in said:
        assert part in str(caught.value)


def test_bad_lines_that_are_allowed_are_left_out(tmp_path: Path) -> None:
    found = read(tmp_path, '{"x": 1}\n\n{"x"\n7\n{"x": 2}\n', max_bad_rows=2)
    assert found.columns == {"x": [1, 2]}
    assert found.kept == [0, 3]
    assert [place for place, _ in found.rejected] == ["line 3", "line 4"]


def test_another_encoding_is_read_as_told(tmp_path: Path) -> None:
    text = '{"x": "é"}\n{"x": "ß"}\n'
    for encoding in ("latin-1", "utf-16", "utf-16-be", "cp1252"):
        found = read(tmp_path, text.encode(encoding), encoding=encoding)
        assert found.columns == {"x": ["é", "ß"]}


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="."), min_size=1, max_size=3)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.floats()
    | st.text(st.characters(codec="utf-8"), max_size=5)
    | st.sampled_from(["2020-01-01", "2020-01-01 10:00:00", "1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=4,
)  # fmt: skip
# Rows of few kinds, as pyarrow has to take them at all.
ALIKE = st.sampled_from(
    [st.integers(-(10**6), 10**6), st.floats(-1e6, 1e6), st.sampled_from(["2020-01-01", "a"]),
     st.booleans(), st.lists(st.integers(0, 9), max_size=2), st.just("2020-01-01")]
)  # fmt: skip
COLUMNS = st.dictionaries(WORDS, ALIKE, min_size=1, max_size=3)
ROWS = COLUMNS.flatmap(
    lambda kinds: st.lists(
        st.fixed_dictionaries({}, optional={k: st.none() | v for k, v in kinds.items()}),
        min_size=1, max_size=6,
    )
)  # fmt: skip


@given(ROWS | st.lists(st.dictionaries(WORDS, VALUES, max_size=3), min_size=1, max_size=4))
@settings(max_examples=300, deadline=None)
def test_pyarrow_is_believed_only_where_it_agrees(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]]
) -> None:
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    path = tmp_path_factory.getbasetemp() / "agrees.jsonl"
    path.write_bytes(text)
    piece = Piece(str(path), "jsonl", str(path), 0, len(text), first=True)
    fast = jsonl._at_once(piece, text)
    if fast is None:
        return
    options = ShardOptions(sources=("a",), output="b", label="c")
    slow = json_rows.read(piece, text, options)
    known = {name: values for name, values in slow.columns.items() if values.type != pa.null()}
    assert {n: v.to_pylist() for n, v in fast.columns.items() if v.type != pa.null()} == {
        n: v.to_pylist() for n, v in known.items()
    }
    assert fast.rows == slow.rows
    for name, values in known.items():
        assert fast.columns[name].type == values.type


def test_pyarrow_is_believed_at_plain_lines(tmp_path: Path) -> None:
    text = b'{"x": 1, "d": "2020-01-01", "f": 0.1234567890123456789}\n' * 10
    (tmp_path / "a.jsonl").write_bytes(text)
    path = str(tmp_path / "a.jsonl")
    fast = jsonl._at_once(Piece(path, "jsonl", path, 0, len(text), first=True), text)
    assert fast is not None
    assert fast.columns["d"].type == pa.string()


def test_a_key_that_is_left_out_may_hold_anything(tmp_path: Path) -> None:
    text = '{"x": 1, "items": [{"a": 1}]}\n{"x": 2, "items": "none"}\n'
    with pytest.raises(UsageError, match="column items"):
        read(tmp_path, text)
    assert read(tmp_path, text, drop=["items"]).columns["x"] == [1, 2]
    with pytest.raises(UsageError, match="--drop items leaves it out"):
        read(tmp_path, '{"items": [{"a": 1}]}\n')
