"""Every arrow type becomes what `castell shard --help` says, or is refused by the column's name."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import feather

from tests.components.shard_data.made import make, refusal, rows

_DAY = datetime.date(1970, 1, 3)
_MOMENT = datetime.datetime(1970, 1, 1, 0, 0, 1, 5)
_TIME = datetime.time(0, 0, 2)
_SPAN = datetime.timedelta(seconds=3)

_STORED: list[tuple[pa.DataType, list[Any], str, str | None, list[Any]]] = [
    *[(kind, [1, None, 3], "int64", None, [1, None, 3])
      for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(),
                   pa.uint32(), pa.uint64())],
    (pa.uint64(), [2**63 - 1, 2**53 + 1, None], "int64", None, [2**63 - 1, 2**53 + 1, None]),
    *[(kind, [0.5, None, -2.0], "float32", None, [0.5, None, -2.0])
      for kind in (pa.float16(), pa.float32(), pa.float64())],
    (pa.float64(), [2.0**40, None, 1.0], "int64", None, [2**40, None, 1]),
    (pa.float64(), [0.5, float("nan"), None], "float32", None, [0.5, None, None]),
    (pa.bool_(), [True, None, False], "int64", "bool", [1, None, 0]),
    *[(kind, [_DAY, None, _DAY], "int64", "date", [2, None, 2])
      for kind in (pa.date32(), pa.date64())],
    *[(pa.timestamp(unit, zone), [_MOMENT.replace(microsecond=0), None, None], "int64",
       "timestamp", [1_000_000, None, None])
      for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC")],
    (pa.timestamp("us", "Europe/Madrid"), [_MOMENT, None, None], "int64", "timestamp",
     [1_000_005, None, None]),
    *[(kind, [_TIME, None, None], "int64", "time", [2_000_000, None, None])
      for kind in (pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"))],
    *[(pa.duration(unit), [_SPAN, None, None], "int64", "duration", [3_000_000, None, None])
      for unit in ("s", "ms", "us", "ns")],
    (pa.decimal128(20, 0), [decimal.Decimal(7), None, None], "int64", None, [7, None, None]),
    (pa.decimal256(40, 0), [decimal.Decimal(7), None, None], "int64", None, [7, None, None]),
    (pa.decimal128(10, 2), [decimal.Decimal("7.25"), None, None], "float32", None,
     [7.25, None, None]),
    *[(kind, ["007", None, "2024-01-01"], "string", None, ["007", None, "2024-01-01"])
      for kind in (pa.string(), pa.large_string(), pa.string_view(),
                   pa.dictionary(pa.int32(), pa.string()))],
    (pa.dictionary(pa.int8(), pa.int64()), [5, None, 5], "int64", None, [5, None, 5]),
    (pa.binary(), [b"a", None, b"b"], "string", None, ["a", None, "b"]),
    (pa.list_(pa.int16()), [[1, 2], None, []], "int64", None, [[1, 2], None, []]),
    (pa.large_list(pa.float64()), [[0.5], None, []], "float32", None, [[0.5], None, []]),
    (pa.list_(pa.string()), [["a", ""], None, []], "string", None, [["a", ""], None, []]),
    (pa.list_(pa.bool_()), [[True], None, []], "int64", "bool", [[1], None, []]),
    (pa.list_(pa.int64(), 2), [[1, 2], None, [3, 4]], "int64", None, [[1, 2], None, [3, 4]]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "cells", "dtype", "logical", "stored"), _STORED)
def test_a_declared_type_becomes_what_the_table_says(
    tmp_path: Path, kind: pa.DataType, cells: list[Any], dtype: str, logical: str | None,
    stored: list[Any],
) -> None:  # fmt: skip
    manifest = make(tmp_path, _file(tmp_path, pa.array(cells, kind)))
    feature = manifest.feature("odd name")
    assert (feature.dtype, feature.logical) == (dtype, logical)
    assert rows(tmp_path / "out")["odd name"] == stored


def test_bytes_that_are_no_text_stay_bytes(tmp_path: Path) -> None:
    manifest = make(tmp_path, _file(tmp_path, pa.array([b"\xff\x00", None, b"a"], pa.binary())))
    assert manifest.feature("odd name").logical == "bytes"


def test_fields_of_a_struct_are_columns(tmp_path: Path) -> None:
    cells = [{"a": 1, "b": {"c": "x"}}, None, {"a": None, "b": {"c": "y"}}]
    kind = pa.struct({"a": pa.int8(), "b": pa.struct({"c": pa.string()})})
    make(tmp_path, _file(tmp_path, pa.array(cells, kind)))
    found = rows(tmp_path / "out")
    assert found["odd name.a"] == [1, None, None]
    assert found["odd name.b.c"] == ["x", None, "y"]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
        pa.array([[[1]], None, []], pa.list_(pa.list_(pa.int64()))),
        pa.array([[{"a": 1}], None, []], pa.list_(pa.struct({"a": pa.int64()}))),
        pa.array([(1, 2, 3), None, None], pa.month_day_nano_interval()),
        pa.array([[1, None], None, []], pa.list_(pa.int64())),
        pa.array([[0.5, float("nan")], None, []], pa.list_(pa.float32())),
        pa.array([2**64 - 1, None, 1], pa.uint64()),
        pa.array([float("inf"), None, 1.5], pa.float64()),
        pa.array([1e300, None, 1.5], pa.float64()),
        pa.array([decimal.Decimal(10**19), None, None], pa.decimal128(20, 0)),
    ],
    ids=lambda array: str(array.type),
)
def test_what_is_not_read_is_refused_by_name(tmp_path: Path, array: pa.Array) -> None:
    message = refusal(tmp_path, _file(tmp_path, array))
    assert "column odd name" in message
    assert "--drop 'odd name'" in message or "--type 'odd name=string'" in message
    make(tmp_path, tmp_path / "a.arrow", drop=["odd name"])


def _file(tmp_path: Path, column: pa.Array) -> Path:
    table = pa.table({"odd name": column, "x": [1, 2, 3], "y": [0, 1, 0]})
    feather.write_feather(table, tmp_path / "a.arrow", compression="uncompressed")
    return tmp_path / "a.arrow"
