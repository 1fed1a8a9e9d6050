"""A piece gives the same cells wherever a file is cut."""

from __future__ import annotations

import csv
import io
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from components.shard_data.formats import quotes
from tests.components.shard_data.formats import reads
from trainer.errors import UsageError

SIZES = (1, 2, 5, 13, 100)
# What delimited text is made of, so that quotes meet everything.
SIGNS = st.lists(
    st.sampled_from(['"', '"', ",", ",", "\n", "\r", "\r\n", "a", "é", "#", " "]), max_size=60
).map("".join)


def _read(name: str, data: bytes, piece_bytes: int, **options: Any) -> Any:
    """Returns what the file holds, or the error; not the number of pieces."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        source = Path(folder, name.partition("/")[0])
        try:
            found = reads.read(source, Path(folder, "work"), piece_bytes, places=True, **options)
        except UsageError as error:
            return str(error).replace(folder, "")
        rest = (found.rows, found.kept, found.places, found.rejected, found.types)
        return found.columns, rest


@given(SIGNS)
@settings(max_examples=60, deadline=None)
def test_delimited_text_is_the_same_however_it_is_cut(text: str) -> None:
    data = f"x,y\n{text}".encode()
    options = {"max_bad_rows": 100}
    whole = _read("a.csv", data, reads.WHOLE, **options)
    for size in SIZES:
        assert _read("a.csv", data, size, **options) == whole


@given(SIGNS)
@settings(max_examples=60, deadline=None)
def test_delimited_text_is_what_pythons_reader_makes_of_it(text: str) -> None:
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    found = _read("a.csv", f"x,y\n{lines}".encode(), 7, max_bad_rows=100)
    records = [record for record in csv.reader(io.StringIO(lines, newline="")) if record]
    if isinstance(found, str):
        assert "never ends" in found
        return
    sound = [record for record in records if len(record) == 2]
    columns, (rows, _, _, rejected, _) = found
    if sound:
        assert [columns["x"][i] or "" for i in range(len(sound))] == [x for x, _ in sound]
        assert [columns["y"][i] or "" for i in range(len(sound))] == [y for _, y in sound]
    assert rows == len(records)
    assert len(rejected) == len(records) - len(sound)


@given(SIGNS)
@settings(max_examples=60, deadline=None)
def test_comments_are_the_same_however_text_is_cut(text: str) -> None:
    data = f"x,y\n{text}".encode()
    options = {"max_bad_rows": 100, "comment": "#"}
    whole = _read("a.csv", data, reads.WHOLE, **options)
    for size in SIZES:
        assert _read("a.csv", data, size, **options) == whole


@given(SIGNS)
@settings(max_examples=200, deadline=None)
def test_counting_quotes_gives_what_taking_fields_one_by_one_gives(text: str) -> None:
    data = text.encode()
    spans = list(quotes.spans_one_by_one(data, ","))
    found = np.stack(quotes.quoted(data, ","), axis=1).tolist()
    merged: list[list[int]] = []
    for begin, end in found:
        if merged and merged[-1][1] == begin:
            merged[-1][1] = end
        else:
            merged.append([begin, end])
    assert [tuple(span) for span in merged] == spans


@pytest.mark.parametrize("name", sorted(reads.samples()))
def test_every_format_is_the_same_however_it_is_cut(name: str) -> None:
    data = reads.samples()[name]
    whole, rest = _read(name, data, reads.WHOLE)
    assert rest[0]
    for size in SIZES:
        columns, again = _read(name, data, size)
        # A key that is null in all of a piece may be an object elsewhere: the core tells.
        assert {c: v for c, v in columns.items() if c in whole} == whole
        assert not any(any(columns[c]) for c in columns.keys() - whole.keys())
        assert again[:4] == rest[:4]


def test_small_groups_of_rows_are_read_together_and_large_ones_in_parts(tmp_path: Path) -> None:
    table = pa.table({"x": range(1000), "text": ["some text"] * 1000})
    (tmp_path / "a.parquet").write_bytes(reads.as_parquet(table, row_group_size=10))
    assert reads.read(tmp_path / "a.parquet", tmp_path / "w").pieces == 1
    (tmp_path / "b.parquet").write_bytes(reads.as_parquet(table, use_dictionary=False))
    found = reads.read(tmp_path / "b.parquet", tmp_path / "w", 1000, places=True)
    assert found.pieces > 10
    assert found.columns["x"] == list(range(1000))
    assert found.places[777] == "row 778"
