"""BigQuery's Storage Read API for some tables, by gRPC on loopback.

Rows are dealt to streams in turn, batch by batch. A stream can be made to break off once, as the
real ones do, and a read to name what it was asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc  # type: ignore[import-untyped]
import pyarrow as pa
from google.cloud.bigquery_storage import types

SERVICE = "google.cloud.bigquery.storage.v1.BigQueryRead"


@dataclass
class BigQuery:
    """`tables` by `projects/P/datasets/D/tables/T`.

    streams: how many a session has at most; batch_rows: rows of a message; breaks: after how many
    messages each stream breaks off, once; asked: the sessions that were asked for.
    """

    tables: dict[str, pa.Table]
    streams: int = 3
    batch_rows: int = 4
    breaks: int | None = None
    asked: list[Any] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)

    @contextmanager
    def serving(self) -> Iterator[str]:
        """Gives the address."""
        handlers = {
            "CreateReadSession": grpc.unary_unary_rpc_method_handler(
                self._create,
                request_deserializer=types.CreateReadSessionRequest.deserialize,
                response_serializer=types.ReadSession.serialize,
            ),
            "ReadRows": grpc.unary_stream_rpc_method_handler(
                self._read,
                request_deserializer=types.ReadRowsRequest.deserialize,
                response_serializer=types.ReadRowsResponse.serialize,
            ),
        }
        server = grpc.server(ThreadPoolExecutor(8))
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            yield f"127.0.0.1:{port}"
        finally:
            server.stop(0)

    def _create(self, request: Any, context: grpc.ServicerContext) -> Any:
        self.asked.append(request)
        name = request.read_session.table
        if name not in self.tables:
            context.abort(grpc.StatusCode.NOT_FOUND, f"Not found: Table {name}")
        table = self.tables[name]
        assert request.read_session.data_format == types.DataFormat.ARROW
        count = min(self.streams, request.max_stream_count, len(table))
        schema = types.ArrowSchema(serialized_schema=table.schema.serialize().to_pybytes())
        return types.ReadSession(
            name="sessions/1",
            table=name,
            arrow_schema=schema,
            streams=[types.ReadStream(name=f"{name}#{i}#{count}") for i in range(count)],
            estimated_total_bytes_scanned=table.nbytes,
        )

    def _read(self, request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        name, number, count = request.read_stream.split("#")
        batches = self.tables[name].to_batches(self.batch_rows)[int(number) :: int(count)]
        at = sent = 0
        for batch in batches:
            at += len(batch)
            if at <= request.offset:
                continue
            if sent == self.breaks and request.read_stream not in self.broken:
                self.broken.add(request.read_stream)
                context.abort(grpc.StatusCode.UNAVAILABLE, "the stream broke off")
            data = types.ArrowRecordBatch(serialized_record_batch=batch.serialize().to_pybytes())
            yield types.ReadRowsResponse(arrow_record_batch=data, row_count=len(batch))
            sent += 1
