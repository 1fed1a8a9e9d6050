"""Tables of BigQuery, from a stand-in that speaks the Storage Read API."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from components.shard_data import inputs
from tests.components.shard_data.formats import reads
from tests.components.shard_data.made import make, rows
from tests.doubles.bigquery import BigQuery
from trainer.errors import UsageError

NAME = "projects/p/datasets/d/tables/t"
SOURCE = "bigquery://p.d.t"


@pytest.fixture
def bigquery(monkeypatch: pytest.MonkeyPatch) -> Iterator[BigQuery]:
    """A table of 20 rows of many types, and one of none."""
    table = reads.table().drop(["half", "coded"])
    double = BigQuery({NAME: table, f"{NAME}0": table.slice(0, 0)})
    with double.serving() as address:
        monkeypatch.setenv("BIGQUERY_STORAGE_EMULATOR_HOST", address)
        yield double


@pytest.mark.parametrize("breaks", [None, 0, 1])
def test_every_row_is_read_once_even_if_streams_break_off(
    bigquery: BigQuery, tmp_path: Path, breaks: int | None
) -> None:
    bigquery.breaks = breaks
    found = reads.read(SOURCE, tmp_path)
    assert sorted(found.columns["x"]) == list(range(20))
    assert found.pieces == 3
    assert found.types["in.a"] == {pa.int64()}
    assert bool(bigquery.broken) == (breaks is not None)


def test_a_table_becomes_a_dataset(bigquery: BigQuery, tmp_path: Path) -> None:
    manifest = make(tmp_path, SOURCE)
    found = rows(tmp_path / "out")
    assert manifest.rows == 20
    assert [found["y"][found["x"].index(i)] for i in range(20)] == [1, 0] * 10
    (file,) = manifest.source["files"]
    assert file["path"].startswith(f"{SOURCE}@")
    assert file["bytes"] > 0


def test_a_moment_is_a_version_of_the_table(bigquery: BigQuery, tmp_path: Path) -> None:
    source = f"{SOURCE}@2026-01-31T13:00:00+01:00"
    (file,) = inputs.find([source])
    assert file.path == f"{SOURCE}@2026-01-31T12:00:00Z"
    assert inputs.fingerprint(file) == inputs.fingerprint(file)
    snapshot = bigquery.asked[0].read_session.table_modifiers.snapshot_time
    assert snapshot.isoformat() == "2026-01-31T12:00:00+00:00"
    inputs.check_unchanged([file])


def test_a_table_without_rows_has_its_columns(bigquery: BigQuery, tmp_path: Path) -> None:
    found = reads.read(f"{SOURCE}0", tmp_path)
    assert found.rows == 0
    assert found.columns["x"] == []


def test_a_table_that_is_not_there_is_named(bigquery: BigQuery, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no such source: bigquery://p\.d\.gone@.*Not found"):
        reads.read("bigquery://p.d.gone", tmp_path)


@pytest.mark.parametrize(
    "source", ["bigquery://p.d", "bigquery://p.d.t.u", "bigquery://p.d.t@soon"]
)
def test_a_name_that_is_none_is_refused(source: str) -> None:
    with pytest.raises(UsageError, match=source):
        inputs.find([source])


def test_without_the_client_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.cloud.bigquery_storage", None)
    monkeypatch.delattr("google.cloud.bigquery_storage", raising=False)
    (file,) = inputs.find([SOURCE])
    with pytest.raises(UsageError, match=r"castell\[components\]"):
        inputs.fingerprint(file)
