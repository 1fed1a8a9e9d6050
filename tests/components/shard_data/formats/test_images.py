"""Folders of images: classes, labels, damaged files."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from components.shard_data import inputs
from tests.components.shard_data.formats import reads
from tests.components.shard_data.formats.reads import picture
from trainer.errors import UsageError


def folder(tmp_path: Path, **files: bytes) -> Path:
    """Writes files below `tmp_path / "in"`; a name that ends in / is an empty folder."""
    for name, data in files.items():
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir()
        else:
            path.write_bytes(data)
    return tmp_path / "in"


def read(source: Path | str, tmp_path: Path, piece_bytes: int = 100, **options: Any) -> reads.All:
    return reads.read(source, tmp_path / "work", piece_bytes, places=True, **options)


def refusal(source: Path, tmp_path: Path, **options: Any) -> str:
    with pytest.raises(UsageError) as caught:
        read(source, tmp_path, **options)
    return str(caught.value)


def test_the_class_is_the_first_folder(tmp_path: Path) -> None:
    files = {"cats/a é.png": picture(), "cats/2020/b.PNG": picture(), "big dogs/c": picture()}
    found = read(folder(tmp_path, **files), tmp_path)
    assert found.columns["path"] == ["big dogs/c", "cats/2020/b.PNG", "cats/a é.png"]
    assert found.columns["label"] == ["big dogs", "cats", "cats"]
    assert found.columns["image"] == [picture()] * 3
    assert found.pieces == 3
    assert found.say.notes == []


def test_what_is_no_image_is_left_out_and_said(tmp_path: Path) -> None:
    files = {"a/x.png": picture(), "a/notes.txt": b"hi", "b/thumbs.db": b"x", "birds/": b""}
    found = read(folder(tmp_path, **files), tmp_path)
    assert found.rows == 1
    left, *empty = found.say.notes
    assert "2 file(s), the first is a/notes.txt" in left
    assert [note.rpartition(": ")[2] for note in empty] == [
        "class b has no image",
        "class birds has no image",
    ]


def test_an_image_without_class_is_refused(tmp_path: Path) -> None:
    message = refusal(folder(tmp_path, **{"a/x.png": picture(), "y.png": picture()}), tmp_path)
    assert "in/y.png is in no folder of a class" in message
    assert "--labels" in message


def test_a_table_among_images_is_asked_about(tmp_path: Path) -> None:
    message = refusal(folder(tmp_path, **{"a/x.png": picture(), "l.csv": b"a,b\n"}), tmp_path)
    assert "(l.csv)" in message
    assert "--labels" in message


def test_labels_come_from_a_table(tmp_path: Path) -> None:
    table = "file,label,age\ny.png,007,3\n./a/é.png,dog,\n"
    files = {"a/e\u0301.png": picture(), "y.png": picture(), "z.png": picture()}
    source = folder(tmp_path, **files, **{"labels.csv": table.encode()})
    found = read(source, tmp_path, labels=str(source / "labels.csv"))
    assert found.columns["label"] == ["dog", "007"]
    assert found.columns["age"] == [None, "3"]
    assert found.columns["path"] == ["a/e\u0301.png", "y.png"]
    assert [note.rpartition(": ")[2] for note in found.say.notes] == ["1 image(s)"]
    again = read(f"{source}/*.png", tmp_path, labels=str(_write(tmp_path, "file,label\ny.png,b\n")))
    assert again.columns["label"] == ["b"]


def _write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "labels.csv"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("file,class\nx.png,a\n", "there is no column label (it has file, class)"),
        ("label\na\n", "there is no column file"),
        ("file,label\nx.png,a\nq.png,b\n", "line 3: "),
        ("file,label\nx.png,a\n,b\n", "line 3: no file is named"),
        ("file,label\nx.png,a\n./x.png,b\n", "line 3: ./x.png is named a second time"),
        ("file,label,path\nx.png,a,b\n", "must not be called path"),
        ("file,label\nx.png\n", "line 2: 1 fields"),
    ],
)
def test_a_table_of_labels_that_does_not_fit_is_refused(
    tmp_path: Path, table: str, said: str
) -> None:
    source = folder(tmp_path, **{"x.png": picture()})
    assert said in refusal(source, tmp_path, labels=str(_write(tmp_path, table)))


def test_labels_are_for_images(tmp_path: Path) -> None:
    path = _write(tmp_path, "x,y\n1,0\n")
    assert "is no folder of images" in refusal(path, tmp_path, labels=str(path))


def test_another_table_of_labels_makes_another_source(tmp_path: Path) -> None:
    source = folder(tmp_path, **{"x.png": picture()})
    (file,) = inputs.find([str(source)])
    one = inputs.fingerprint(file, str(_write(tmp_path, "file,label\nx.png,a\n")))
    other = inputs.fingerprint(file, str(_write(tmp_path, "file,label\nx.png,b\n")))
    assert one["files"] == 1
    assert one["bytes"] == len(picture())
    assert one["sha256"] != other["sha256"]


def _claims(width: int, height: int) -> bytes:
    """A PNG of some bytes that says that it is large."""
    data = bytearray(picture("1", size=(8, 8)))
    data[16:24] = struct.pack(">II", width, height)
    data[29:33] = struct.pack(">I", zlib.crc32(data[12:29]))
    return bytes(data)


def _flipped() -> bytes:
    data = bytearray(picture(size=(50, 50)))
    data[200] ^= 1
    return bytes(data)


DAMAGED = {
    "empty.png": (b"", "an empty file"),
    "text.jpg": (b"<html>", "not a JPEG, PNG, GIF or BMP image"),
    "cut.png": (picture(size=(50, 50))[:-100], "cannot be decoded"),
    "flipped.png": (_flipped(), "cannot be decoded"),
    "cut.jpg": (picture("RGB", "JPEG", (50, 50))[:-300], "truncated"),
    "cut.gif": (picture("P", "GIF", (50, 50))[:-300], "cannot be decoded"),
    "cut.bmp": (picture("RGB", "BMP")[:-20], "truncated"),
    "bomb.png": (_claims(60_000, 60_000), "bomb"),
    "large.png": (_claims(10_000, 10_000), "10000 x 10000 pixels, more than 89,478,485"),
}


def test_damaged_images_are_named_and_counted(tmp_path: Path) -> None:
    files = {f"a/{name}": data for name, (data, _) in DAMAGED.items()}
    source = folder(tmp_path, **files, **{"a/sound.png": picture()})
    found = read(source, tmp_path, reads.WHOLE, max_bad_rows=len(DAMAGED))
    assert found.columns["path"] == ["a/sound.png"]
    assert found.rows == len(DAMAGED) + 1
    for (place, reason), name in zip(found.rejected, sorted(DAMAGED), strict=True):
        assert place == f"/a/{name}"
        assert DAMAGED[name][1] in reason
    message = refusal(source, tmp_path, max_bad_rows=1, piece_bytes=reads.WHOLE)
    assert "in/a/cut.bmp: cannot be decoded" in message
    assert "--max-bad-rows" in message


def test_a_single_image_and_a_glob_of_them_are_folders(tmp_path: Path) -> None:
    source = folder(tmp_path, **{"a/x.png": picture(), "b/y.png": picture()})
    (one,) = inputs.find([str(source / "a/x.png")])
    assert one.images == ("x.png",)
    (both,) = inputs.find([f"{source}/*/*.png"])
    assert both.images == ("a/x.png", "b/y.png")
    with pytest.raises(UsageError, match=r"x\.png is given twice"):
        inputs.find([f"{source}/*/*.png", str(source)])
