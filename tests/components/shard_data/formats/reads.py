"""Reads whole sources piece by piece, as the phases do, and samples of every format."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from PIL import Image
from pyarrow import feather, parquet

from components.shard_data import formats, inputs
from components.shard_data.findings import Findings
from components.shard_data.options import ShardOptions
from trainer.data.example import Example
from trainer.data.records import frame

WHOLE = 1 << 24


@dataclass
class All:
    """What all pieces of a source gave, in order.

    columns: values by column, where a piece lacks it None; kept: numbers over all pieces.
    """

    columns: dict[str, list[Any]] = field(default_factory=dict)
    types: dict[str, set[pa.DataType]] = field(default_factory=dict)
    rows: int = 0
    kept: list[int] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    rejected: list[tuple[str, str]] = field(default_factory=list)
    pieces: int = 0
    say: Findings = field(default_factory=Findings)


def read(
    source: Path | str,
    work: Path,
    piece_bytes: int = WHOLE,
    *,
    places: bool = False,
    **options: Any,
) -> All:
    """Reads a source in pieces of about `piece_bytes`."""
    given = {"sources": [str(source)], "output": "out", "label": "y", **options}
    parsed = ShardOptions.parse(given)
    found = All()
    for file in inputs.find(parsed.sources):
        for piece in inputs.prepare(file, work, parsed, piece_bytes):
            _add(found, piece, parsed, places)
    return found


def _add(found: All, piece: formats.Piece, options: ShardOptions, places: bool) -> None:
    part = formats.read(piece, options)
    before = len(found.kept)
    for name, values in part.columns.items():
        assert len(values) == len(part.kept)
        held = found.columns.setdefault(name, [None] * before)
        # Some moments are beyond Python's.
        plain = values.cast(pa.int64()) if pa.types.is_timestamp(values.type) else values
        held.extend(plain.to_pylist())
        found.types.setdefault(name, set()).add(values.type)
    for held in found.columns.values():
        held.extend([None] * (before + len(part.kept) - len(held)))
    if places:
        found.places += [_place(piece, int(row), options) for row in part.kept]
        found.rejected += [(_place(piece, b.row, options), b.reason) for b in part.rejected]
    found.kept += [found.rows + int(row) for row in part.kept]
    found.rows += part.rows
    found.pieces += 1
    found.say.add(part.say)


def _place(piece: formats.Piece, row: int, options: ShardOptions) -> str:
    return formats.place(piece, row, options).removeprefix(piece.name).removeprefix(", ")


def example(**features: list[Any] | None) -> bytes:
    """Returns a tf.train.Example; an empty list is one of int64, None a feature of no kind."""
    made = Example()
    for name, values in features.items():
        feature = made.features.feature[name]
        if values is None:
            continue
        if not values or isinstance(values[0], int):
            feature.int64_list.SetInParent()
            feature.int64_list.value.extend(values)
        elif isinstance(values[0], float):
            feature.float_list.value.extend(values)
        else:
            feature.bytes_list.value.extend(values)
    raw: bytes = made.SerializeToString(deterministic=True)
    return raw


def records(*payloads: bytes) -> bytes:
    """Returns a TFRecord file."""
    return b"".join(map(frame, payloads))


def picture(
    mode: str = "RGB", kind: str = "PNG", size: tuple[int, int] = (6, 4), **save: Any
) -> bytes:
    """Returns an image file of noise that is always the same."""
    noise = np.random.default_rng(0)
    if mode == "I;16":
        image = Image.fromarray(noise.integers(0, 1 << 16, size[::-1]).astype(np.uint16))
    else:
        levels = noise.integers(0, 256, (*size[::-1], 3)).astype(np.uint8)
        image = Image.fromarray(levels).convert(mode)
    buffer = io.BytesIO()
    image.save(buffer, kind, **save)
    return buffer.getvalue()


def turned(orientation: int) -> Image.Exif:
    """Returns EXIF that says how a camera was held."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


def zipped(**members: bytes) -> bytes:
    """Returns a zip archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def table() -> pa.Table:
    """Returns 20 rows of many types."""
    return pa.table(
        {
            "x": pa.array(range(20), pa.int64()),
            "text": pa.array([None if i == 3 else f"é{i}" for i in range(20)]),
            "coded": pa.array([f"w{i % 3}" for i in range(20)]).dictionary_encode(),
            "in": pa.array([{"a": i, "b": [i] * (i % 3)} for i in range(20)]),
            "time": pa.array(range(20), pa.timestamp("ms", "UTC")),
            "whole": pa.array(range(20)).cast(pa.decimal128(20, 0)),
            "half": pa.array(np.arange(20, dtype=np.float16)),
            "y": pa.array([i % 2 == 0 for i in range(20)]),
        }
    )


def in_memory(write: Callable[[pa.Table, io.BytesIO], object], some: pa.Table) -> bytes:
    """Returns what a function writes of a table."""
    buffer = io.BytesIO()
    write(some, buffer)
    return buffer.getvalue()


def as_parquet(some: pa.Table, **options: Any) -> bytes:
    """Returns a Parquet file."""
    return in_memory(lambda t, b: parquet.write_table(t, b, **options), some)


def as_feather(some: pa.Table, **options: Any) -> bytes:
    """Returns a Feather file, an Arrow one if it is of version 2."""
    return in_memory(lambda t, b: feather.write_feather(t, b, **options), some)


def as_stream(some: pa.Table, batch_rows: int) -> bytes:
    """Returns an Arrow stream."""
    buffer = io.BytesIO()
    with pa.ipc.new_stream(buffer, some.schema) as writer:
        writer.write_table(some, batch_rows)
    return buffer.getvalue()


TEXT = b'x,y,z\n1,0,"a,b"\n2,1,\n"3\n3",0,"c""d"\n4,1,5" pipe\n'
LINES = (
    b'{"x": 1, "y": 0, "z": {"a": [1, 2], "b": "2020-01-01"}}\n\n'
    b'{"x": 2.5, "y": 1, "z": null, "w": true}\n{"x": NaN, "y": 0}\n'
)


def samples() -> dict[str, bytes]:
    """Returns a small sound file of every format, by a name."""
    examples = records(
        example(x=[1], y=[0], z=[b"a", b"b"]), example(x=[2], y=[1], z=[b"c"], w=[0.5])
    )
    return {
        "a.csv": TEXT,
        "b.tsv": TEXT.replace(b",", b"\t"),
        "c.csv.gz": gzip.compress(TEXT, mtime=0),
        "d.csv.bz2": bz2.compress(TEXT),
        "e.csv.xz": lzma.compress(TEXT),
        "f.csv.zst": pa.compress(TEXT, "zstd", asbytes=True),
        "g.zip": zipped(**{"a.csv": TEXT, "b.csv": TEXT}),
        "h.jsonl": LINES,
        "i.parquet": as_parquet(table(), row_group_size=7),
        "j.parquet": as_parquet(table(), compression="zstd", use_dictionary=False),
        "k.arrow": as_stream(table(), 6),
        "l.feather": as_feather(table(), chunksize=6),
        "m.feather": as_feather(table(), compression="uncompressed"),
        "o.tfrecord": examples,
        "p.tfrecord.gz": gzip.compress(examples, mtime=0),
        "q.tfrecord-0": zlib.compress(examples),
        "r/cats/a.png": picture(),
        "s/cats/a.png": picture("P"),
        "t/cats/a.jpg": picture("RGB", "JPEG", (20, 20), exif=turned(6)),
        "u/cats/a.gif": picture("P", "GIF"),
        "v/cats/a.bmp": picture("RGB", "BMP"),
        "w/cats/a.png": picture("I;16"),
    }
