"""Delimited text, where it is odd or damaged: the right cells, or the line and the flag."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from components.shard_data.formats import delimited, lines
from components.shard_data.inputs import text
from tests.components.shard_data.formats import reads
from trainer.errors import UsageError

SIZES = pytest.mark.parametrize("piece_bytes", [1, 10, reads.WHOLE])


def read(tmp_path: Path, data: str | bytes, piece_bytes: int, **options: Any) -> reads.All:
    path = tmp_path / "a.csv"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return reads.read(path, tmp_path / "work", piece_bytes, places=True, **options)


def refusal(tmp_path: Path, data: str | bytes, piece_bytes: int, **options: Any) -> str:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, data, piece_bytes, **options)
    return str(caught.value)


@SIZES
def test_lines_are_counted_over_quotes_comments_and_skipped_rows(
    tmp_path: Path, piece_bytes: int
) -> None:
    data = '\ufeff"odd\n#no"\n# "\nx,y\r\n\r\n"a\r\nb",0\r#c,"\n"#d",1\nonly\n5" ,2\n'
    found = read(tmp_path, data, piece_bytes, skip_rows=2, comment="#", max_bad_rows=1)
    assert found.columns == {"x": ["a\r\nb", "#d", '5" '], "y": ["0", "1", "2"]}
    assert found.places == ["line 6", "line 9", "line 11"]
    assert found.rejected == [("line 10", "1 fields, the header has 2")]
    assert found.kept == [0, 1, 3]


@SIZES
@pytest.mark.parametrize(
    ("data", "options", "said"),
    [
        ('x,y\n"a\nb",0\n2,"1\n3,0\n4,1\n', {}, "line 4: a quoted field begins and never ends"),
        ('x,y\n1,0\n2,"a""\n', {"max_bad_rows": 9}, "line 3: a quoted field begins"),
        ('x,"y\n1,0\n', {}, "line 1: a quoted field begins"),
        ('about\nx,y\n1,0\n2,"1\n', {"skip_rows": 1}, "line 4: a quoted field begins"),
        (b"x,y\n1,0\n1,\xff,2\n", {"max_bad_rows": 9}, "line 3: byte 0xff is not utf-8"),
        (b"x,y\n1,0\n\xed\xa0\x80,2\n", {}, "line 3: byte 0xed is not utf-8"),
        (b"x,\xe9\n1,0\n", {}, "line 1: byte 0xe9 is not utf-8: say how the file is written"),
        ("x,y\n1,0\n".encode("utf-16-le"), {}, "line 1: a zero byte is no text"),
        ("x,y\n1,é\n".encode("utf-16")[:-3], {"encoding": "utf-16"}, "is not utf-16"),
        (b"\xff\xfex\0,\0y\0\n\x00\x00\xd8,\0", {"encoding": "utf-16"}, "line 2: byte 0x00"),
        ("x,y\n1,é\n".encode(), {"encoding": "ascii"}, "line 2: byte 0xc3 is not ascii"),
        (b"x,y\n1,0\n2,1\x81\n", {"encoding": "cp1252"}, "line 3: byte 0x81 is not cp1252"),
        (b"x,y\n1,0\n", {"encoding": "idna"}, ""),
    ],
)
def test_bad_text_is_named_by_its_line(
    tmp_path: Path, data: str | bytes, options: dict[str, Any], said: str, piece_bytes: int
) -> None:
    if said:
        assert said in refusal(tmp_path, data, piece_bytes, **options)
    else:
        assert read(tmp_path, data, piece_bytes, **options).rows == 1


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig", "shift_jis", "utf-7"])
def test_encodings_are_read_in_pieces(tmp_path: Path, encoding: str) -> None:
    cells = ["日本", "é" if "jis" not in encoding else "x", 'q"']
    data = "x,y\n" + "".join(f"{cells[i % 3]}{i},1\n" for i in range(500))
    found = read(tmp_path, data.encode(encoding), 100, encoding=encoding)
    assert found.columns["x"] == [f"{cells[i % 3]}{i}" for i in range(500)]


@given(st.text(st.characters(codec="utf-8"), max_size=40), st.integers(1, 5))
@settings(deadline=None)
def test_transcoding_does_not_depend_on_how_bytes_come(letters: str, size: int) -> None:
    data = letters.encode("utf-16")
    chunks = [data[i : i + size] for i in range(0, len(data), size)]
    assert b"".join(text.to_utf8("a", chunks, "utf-16")) == letters.encode()


SIGNS = st.lists(st.sampled_from(['"', ",", "\n", "\r", "\r\n", "a", "#", "#b"]), max_size=40)


@given(SIGNS.map("".join), st.integers(1, 6), st.integers(0, 2))
@example("\r#\n\n", 1, 0)
@example("\r#\r#\n\na", 1, 0)
@settings(deadline=None)
def test_comments_do_not_depend_on_how_bytes_come(letters: str, size: int, skip: int) -> None:
    data = letters.encode()
    chunks = [data[i : i + size] for i in range(0, len(data), size)]
    blanked = b"".join(text.without_comments(chunks, "#", skip, ","))
    assert blanked == b"".join(text.without_comments([data], "#", skip, ","))
    assert lines.breaks(blanked) == lines.breaks(data)
    if '"' not in letters:
        kept = [b"" if n >= skip and line.startswith(b"#") else line.rstrip(b"\r\n")
                for n, line in enumerate(lines.split([data]))]  # fmt: skip
        assert [line.rstrip(b"\r\n") for line in lines.split([blanked])] == (
            kept if kept and (kept[-1] or data.endswith((b"\n", b"\r"))) else kept[:-1]
        )


def test_a_row_without_end_takes_no_endless_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delimited, "_LONGEST_RECORD", 1000)
    monkeypatch.setattr(delimited, "_LONGEST_HEADER", 1000)
    rows = "1,0\n" * 1000
    assert "line 2: a row of over" in refusal(tmp_path, f'x,y\n"{rows}"\n', 100)
    assert "line 1: a quoted field" in refusal(tmp_path, f'"x,y\n{rows}', 100)


def test_a_header_alone_is_a_piece_without_rows(tmp_path: Path) -> None:
    for data in ("x,y", "x,y\n", "\ufeffx,y\r\n\n"):
        found = read(tmp_path, data, 1)
        assert found.rows == 0
        assert found.columns == {"x": [], "y": []}


@SIZES
def test_a_long_quoted_field_is_said_once(tmp_path: Path, piece_bytes: int) -> None:
    cell = "\n".join("abcdefghijklm")
    found = read(tmp_path, f'x,y\n"{cell}",0\nb,1\n"{cell}\nn",1\n', piece_bytes)
    (note,) = found.say.all_notes()
    assert note.endswith("a quoted field of column x has 14 lines")
