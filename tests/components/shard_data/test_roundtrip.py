"""Arbitrary arrow tables through the whole step, both layouts, against reference decoders."""

from __future__ import annotations

import datetime
import decimal
import struct
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import feather
from tfx_bsl.coders import example_coder

from tests.components.shard_data.made import make, rows
from trainer.data.manifest import Manifest
from trainer.data.records import read_records

_INT64 = st.integers(-(2**63) + 1, 2**63 - 1)
_FLOAT32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)
_DAYS = st.dates(datetime.date(1, 1, 1), datetime.date(9999, 12, 31))
_MOMENTS = st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1))
_EPOCH = datetime.datetime(1970, 1, 1)
_MICRO = datetime.timedelta(microseconds=1)


def _float(value: Any) -> float:
    return float(struct.unpack("<f", struct.pack("<f", float(value)))[0])


# What a column may be: its arrow type, its cells, and what the dataset must hold of one.
_KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any], Any]] = {
    "int64": (pa.int64(), _INT64, int),
    "uint8": (pa.uint8(), st.integers(0, 255), int),
    "int16": (pa.int16(), st.integers(-(2**15), 2**15 - 1), int),
    "bool": (pa.bool_(), st.booleans(), int),
    # A half breaks the rule of whole columns: they would be integers beyond 2^24.
    "float32": (pa.float32(), st.integers(-(2**20), 2**20).map(lambda i: i + 0.5), _float),
    "float64": (pa.float64(), st.integers(-(2**18), 2**18).map(lambda i: i + 0.25), _float),
    "half": (pa.float16(), st.integers(-500, 500).map(lambda i: i + 0.5), _float),
    "string": (pa.string(), _TEXT, str),
    "large": (pa.large_string(), _TEXT, str),
    "category": (pa.dictionary(pa.int8(), pa.string()), st.sampled_from(["a", "é", "c c"]), str),
    "date": (pa.date32(), _DAYS, lambda d: (d - _EPOCH.date()).days),
    "timestamp": (pa.timestamp("us"), _MOMENTS, lambda t: (t - _EPOCH) // _MICRO),
    "zoned": (pa.timestamp("ms", "UTC"), _MOMENTS.map(lambda t: t.replace(microsecond=0)),
              lambda t: (t - _EPOCH) // _MICRO),
    "duration": (pa.duration("ms"), st.integers(-(10**9), 10**9), lambda ms: ms * 1000),
    "decimal": (pa.decimal128(18, 0), st.integers(-(10**17), 10**17).map(decimal.Decimal), int),
    "ints": (pa.list_(pa.int32()), st.lists(st.integers(-9, 9), max_size=3), list),
    "texts": (pa.list_(pa.string()), st.lists(_TEXT, max_size=3), list),
    "pair": (pa.list_(pa.int64(), 2), st.lists(_INT64, min_size=2, max_size=2), list),
}  # fmt: skip


@st.composite
def _tables(draw: st.DrawFn) -> tuple[dict[str, str], dict[str, list[Any]]]:
    count = draw(st.integers(2, 12))
    kinds = draw(st.lists(st.sampled_from(sorted(_KINDS)), min_size=1, max_size=6))
    columns, names = {}, {}
    for number, kind in enumerate(kinds):
        cell = st.none() | _KINDS[kind][1]
        cells = draw(st.lists(cell, min_size=count, max_size=count))
        # A column without any value is left out, which other tests hold.
        cells[draw(st.integers(0, count - 1))] = draw(_KINDS[kind][1])
        names[f"c{number}"] = kind
        columns[f"c{number}"] = cells
    columns["y"] = [i % 2 for i in range(count)]
    return names, columns


def _expected(kind: str, cells: list[Any]) -> list[Any]:
    return [None if cell is None else _KINDS[kind][2](cell) for cell in cells]


@settings(max_examples=60, deadline=None)
@given(_tables(), st.sampled_from([1, 3, 1024]), st.integers(1, 3))
def test_any_table_comes_back(
    table: tuple[dict[str, str], dict[str, list[Any]]], block_rows: int, shards: int
) -> None:
    kinds, cells = table
    types = {name: _KINDS[kind][0] for name, kind in kinds.items()}
    arrays = [pa.array(column, types.get(name, pa.int64())) for name, column in cells.items()]
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        # Not Parquet: pyarrow 25 writes nulls of fixed-size lists, and cannot read them.
        source = root / "a.arrow"
        feather.write_feather(pa.table(arrays, names=list(cells)), source)
        options: dict[str, Any] = {"shards": min(shards, len(cells["y"])), "label_kind": "binary"}
        make(root, source, output=str(root / "blocks"), block_rows=block_rows, **options)
        manifest = make(root, source, output=str(root / "rows"), layout="rows", **options)
        found = rows(root / "blocks")
        decoded = _decoded(root / "rows", manifest)
    for name, kind in kinds.items():
        expected = _expected(kind, cells[name])
        assert found[name] == expected, (name, kind)
        flat = [None if cell is None else cell if isinstance(cell, list) else [cell]
                for cell in (expected[i] for i in found["stored"])]  # fmt: skip
        assert decoded[name] == flat, (name, kind)


def _decoded(root: Path, manifest: Manifest) -> dict[str, list[Any]]:
    """Returns the columns of the records in their order, as tfx_bsl reads them."""
    records = []
    for shard in manifest.splits["train"].shards:
        with (root / shard.path).open("rb") as file:
            records += list(read_records(file))
    batch = example_coder.ExamplesToRecordBatchDecoder().DecodeBatch(records)
    return {
        name: _as_text(column).to_pylist()
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    }


def _as_text(column: pa.Array) -> pa.Array:
    kind = column.type.value_type
    if pa.types.is_large_binary(kind) or pa.types.is_binary(kind):
        return pc.cast(column, pa.large_list(pa.large_string()))
    return column
