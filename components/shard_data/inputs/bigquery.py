"""Tables of BigQuery: `bigquery://PROJECT.DATASET.TABLE`, by the Storage Read API, as Arrow.

A table has no bytes that could be hashed. What identifies it is the moment that it is read at: now,
or `@2026-01-31T12:00:00Z` behind its name, for as long as BigQuery remembers (seven days). The
order of its rows is BigQuery's affair, which promises none.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from components.shard_data.formats import Piece
from components.shard_data.formats.piece import cannot_unpack
from trainer.errors import UsageError

SCHEME = "bigquery://"
# A stand-in's address, as with Google's other emulators: no encryption, no credentials.
EMULATOR = "BIGQUERY_STORAGE_EMULATOR_HOST"
_NAME = re.compile(
    r"bigquery://(?P<project>(?:[^/@:]+:)?[^/@:.]+)\.(?P<dataset>[^/@.]+)\.(?P<table>[^/@.]+)"
    r"(?:@(?P<moment>[^@]+))?"
)
_MOST_STREAMS = 16
_THREADS = 8


@dataclass(frozen=True)
class Table:
    """A table at a moment."""

    project: str
    path: str
    moment: datetime.datetime

    @classmethod
    def of(cls, source: str) -> Table:
        """Reads the name; UsageError if it is none."""
        match = _NAME.fullmatch(source)
        if match is None:
            raise UsageError(f"source {source}: name a table as {SCHEME}PROJECT.DATASET.TABLE")
        project, dataset, table = match["project"], match["dataset"], match["table"]
        path = f"projects/{project}/datasets/{dataset}/tables/{table}"
        return cls(project, path, _moment(source, match["moment"]))


def at_a_moment(source: str) -> str:
    """Returns a table's name with the moment that it is read at.

    Raises:
      UsageError: it is no name of a table.
    """
    moment = Table.of(source).moment.isoformat().replace("+00:00", "Z")
    return f"{source.partition('@')[0]}@{moment}"


def fingerprint(source: str) -> dict[str, Any]:
    """Returns path, bytes (an estimate) and a hash of the name with its moment.

    Raises:
      UsageError: there is no such table, or no way to it.
    """
    session = _session(_client(source), source, 1)
    digest = hashlib.sha256(source.encode()).hexdigest()
    return {"path": source, "bytes": session.estimated_total_bytes_scanned, "sha256": digest}


def fetch(source: str, folder: Path) -> list[Piece]:
    """Writes a table's rows as Arrow files, one for each stream, and returns these uncut.

    Raises:
      UsageError: there is no such table, no way to it, or the disk is full.
    """
    client = _client(source)
    session = _session(client, source, _MOST_STREAMS)
    folder.mkdir(parents=True, exist_ok=True)
    with _told(source):
        schema = pa.ipc.read_schema(pa.py_buffer(session.arrow_schema.serialized_schema))
    names = [stream.name for stream in session.streams]
    targets = [folder / f"{number:05d}.arrow" for number in range(max(1, len(names)))]
    with ThreadPoolExecutor(_THREADS) as threads:
        if names:
            jobs = zip(names, targets, strict=True)
            list(threads.map(lambda job: _download(client, source, schema, *job), jobs))
        else:
            _write(targets[0], schema, iter(()))
    return [
        Piece(f"{source}!{number}", "arrow", str(target), 0, 0, first=True)
        for number, target in enumerate(targets)
    ]


def _moment(source: str, text: str | None) -> datetime.datetime:
    if text is None:
        return datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"source {source}: {text} is no moment such as 2026-01-31T12:00:00Z"
        ) from None
    return moment.replace(tzinfo=moment.tzinfo or datetime.UTC).astimezone(datetime.UTC)


def _client(source: str) -> Any:
    try:
        from google.cloud import bigquery_storage
    except ImportError:
        raise UsageError(
            f"source {source}: BigQuery is read with google-cloud-bigquery-storage: "
            "pip install 'castell[components]'"
        ) from None
    with _told(source):
        address = os.environ.get(EMULATOR)
        if address is None:
            return bigquery_storage.BigQueryReadClient()
        import grpc  # type: ignore[import-untyped]

        transport = bigquery_storage.BigQueryReadClient.get_transport_class("grpc")
        return bigquery_storage.BigQueryReadClient(
            transport=transport(channel=grpc.insecure_channel(address))
        )


def _session(client: Any, source: str, streams: int) -> Any:
    from google.cloud.bigquery_storage import types

    table = Table.of(source)
    session = types.ReadSession(
        table=table.path,
        data_format=types.DataFormat.ARROW,
        table_modifiers=types.ReadSession.TableModifiers(snapshot_time=table.moment),
    )
    with _told(source):
        return client.create_read_session(
            parent=f"projects/{os.environ.get('GOOGLE_CLOUD_PROJECT', table.project)}",
            read_session=session,
            max_stream_count=streams,
        )


def _download(client: Any, source: str, schema: pa.Schema, name: str, target: Path) -> None:
    """Writes one stream; where it breaks off, the client goes on behind the last row."""
    with _told(source):
        _write(target, schema, (_batch(message, schema) for message in client.read_rows(name)))


def _batch(message: Any, schema: pa.Schema) -> pa.RecordBatch:
    data = message.arrow_record_batch.serialized_record_batch
    return pa.ipc.read_record_batch(pa.py_buffer(data), schema)


def _write(target: Path, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
    with pa.ipc.new_file(str(target), schema) as writer:
        for batch in batches:
            try:
                writer.write_batch(batch)
            except OSError as error:
                raise cannot_unpack(target, error) from None


@contextmanager
def _told(source: str) -> Iterator[None]:
    """Makes what Google's client may raise an error of one line."""
    from google.api_core.exceptions import GoogleAPICallError, NotFound, RetryError
    from google.auth.exceptions import GoogleAuthError

    try:
        yield
    except NotFound as error:
        raise UsageError(f"no such source: {source} ({error.message})") from None
    except GoogleAPICallError as error:
        raise UsageError(f"cannot read {source}: {error.message}") from None
    except (GoogleAuthError, RetryError, pa.ArrowException) as error:
        raise UsageError(f"cannot read {source}: {' '.join(str(error).split())}") from None
