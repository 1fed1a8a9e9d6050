"""A dataset out of each format: the same rows, whatever holds them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.components.shard_data.formats import reads
from tests.components.shard_data.formats.reads import example, picture, records
from tests.components.shard_data.made import make, refusal, rows, write

X = [None if i % 7 == 3 else i / 4 for i in range(40)]
TEXT = [f"ü{i % 3}" for i in range(40)]
Y = [i % 2 for i in range(40)]


def _lines() -> bytes:
    cells = zip(X, TEXT, Y, strict=True)
    given = (("" if x is None else f'"x": {x}, ', t, y) for x, t, y in cells)
    return "".join(f'{{{x}"t": "{t}", "y": {y}}}\n' for x, t, y in given).encode()


def _delimited(delimiter: str) -> bytes:
    cells = zip(X, TEXT, Y, strict=True)
    body = (delimiter.join(("" if x is None else str(x), t, str(y))) for x, t, y in cells)
    return "\n".join([delimiter.join("xty"), *body]).encode()


def _table() -> pa.Table:
    return pa.table({"x": pa.array(X, pa.float32()), "t": TEXT, "y": pa.array(Y, pa.int8())})


def _examples() -> bytes:
    cells = zip(X, TEXT, Y, strict=True)
    return records(
        *(example(**({} if x is None else {"x": [x]}), t=[t.encode()], y=[y]) for x, t, y in cells)
    )


FILES = {
    "a.csv": _delimited(","),
    "a.tsv": _delimited("\t"),
    "a.zip": reads.zipped(**{"a.csv": _delimited(",")}),
    "a.jsonl": _lines(),
    "a.parquet": reads.as_parquet(_table(), row_group_size=9),
    "a.feather": reads.as_feather(_table(), chunksize=9),
    "a.arrow": reads.as_stream(_table(), 9),
    "a.tfrecord": _examples(),
}


@pytest.mark.parametrize("name", FILES)
def test_the_same_rows_come_out_of_every_format(tmp_path: Path, name: str) -> None:
    manifest = make(tmp_path, write(tmp_path / name, FILES[name]))
    found = rows(tmp_path / "out")
    assert found["x"] == X
    assert found["t"] == TEXT
    assert found["y"] == Y
    assert manifest.feature("x").dtype == "float32"
    assert manifest.label.kind == "binary"


def test_folders_of_images_are_a_dataset(tmp_path: Path) -> None:
    for i in range(6):
        write(tmp_path / f"in/{'cats' if i % 2 else 'big dogs'}/{i}.png", picture(size=(i + 2, 3)))
    write(tmp_path / "in/cats/broken.png", picture()[:-20])
    write(tmp_path / "in/cats/odd.gif", picture("P", "GIF"))
    assert "in/cats/broken.png" in refusal(tmp_path, tmp_path / "in", label="label")
    manifest = make(tmp_path, tmp_path / "in", label="label", max_bad_rows=1)
    assert manifest.label.classes == ("big dogs", "cats")
    assert manifest.rows == 7
    assert manifest.feature("image").dtype == "string"
    assert any("converted from GIF: 1 image(s)" in note for note in manifest.notes)
    assert manifest.dropped[0]["rows"] == 1
    assert '"where"' in (tmp_path / "out/rejected.jsonl").read_text()


@pytest.mark.parametrize("piece_bytes", [1, 1 << 20])
def test_keys_of_json_may_come_late_and_be_null(
    tmp_path: Path, piece_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("components.shard_data.produce._LARGEST_PIECE", piece_bytes)
    lines = [
        '{"o": null, "y": 0}',
        '{"o": {"a": 1}, "y": 1}',
        '{"y": 1, "n": 2.5}',
        '{"y": 0, "n": 3}',
    ]
    write(tmp_path / "a.jsonl", "\n".join(lines))
    manifest = make(tmp_path, tmp_path / "a.jsonl")
    found: dict[str, Any] = rows(tmp_path / "out")
    assert found["o.a"] == [None, 1, None, None]
    assert found["n"] == [None, None, 2.5, 3.0]
    assert manifest.dropped == ()
