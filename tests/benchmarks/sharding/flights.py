"""All 336,776 flights out of New York in 2013, twelve columns: real numbers, texts and nulls."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyarrow import csv, parquet

from components.shard_data.options import ShardOptions
from components.shard_data.shard import shard
from pipelines.demo import find_archive, read_table
from trainer.data.manifest import Manifest

DOWNLOAD = Path("build/download")
COLUMNS = (
    "month", "day", "sched_dep_time", "dep_delay", "arr_delay", "carrier", "flight", "origin",
    "dest", "air_time", "distance", "hour",
)  # fmt: skip
LABEL = "arr_delay"


def table() -> pa.Table:
    """Returns the rows; UsageError if the archive is not there (`make bench` fetches it)."""
    options = csv.ConvertOptions(
        include_columns=list(COLUMNS), null_values=["NA"], strings_can_be_null=True
    )
    found = csv.read_csv(
        pa.BufferReader(read_table(find_archive(DOWNLOAD))), convert_options=options
    )
    return found.combine_chunks()


def write_csv(found: pa.Table, path: Path, times: int = 1) -> Path:
    """Writes the rows, `times` one after another, null as the empty field."""
    options = csv.WriteOptions(quoting_style="none")
    with path.open("wb") as file, csv.CSVWriter(file, found.schema, write_options=options) as out:
        for _ in range(times):
            out.write_table(found)
    return path


def write_parquet(found: pa.Table, path: Path, times: int = 1) -> Path:
    """Writes the rows, `times` one after another."""
    with parquet.ParquetWriter(path, found.schema) as out:
        for _ in range(times):
            out.write_table(found)
    return path


def sharded(source: Path, output: Path, **options: object) -> Manifest:
    """Runs `castell shard` on the flights in this process; rows without label are left out."""
    given = {
        "sources": [str(source)], "output": str(output), "label": LABEL,
        "drop_missing_label": True, "processes": 1, **options,
    }  # fmt: skip
    return shard(ShardOptions.parse(given))
