"""A real HTTP server on loopback that hands out a directory, and can be made to fail."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class Store(ThreadingHTTPServer):
    """faults: what the next requests for shards get: "error", "cut" or "altered".

    away: how many requests of any kind for shards are answered by 503 from now on. spoilt: shards
    that always come altered. seconds: how long each of them takes. fetched: those that were asked
    for, in order.
    """

    daemon_threads = True

    def __init__(self, directory: Path) -> None:
        super().__init__(("127.0.0.1", 0), partial(_Handler, directory=str(directory)))
        self.faults: list[str] = []
        self.away = 0
        self.spoilt: set[str] = set()
        self.seconds = 0.0
        self.fetched: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(SimpleHTTPRequestHandler):
    server: Store

    def do_HEAD(self) -> None:
        return self.send_error(503) if self._is_away() else super().do_HEAD()

    def _is_away(self) -> bool:
        self.server.away -= self.path.endswith(".tfrecord")
        return self.server.away >= 0

    def do_GET(self) -> None:
        if not self.path.endswith(".tfrecord"):
            return super().do_GET()
        if self._is_away():
            return self.send_error(503)
        self.server.fetched.append(self.path)
        time.sleep(self.server.seconds)
        fault = self.server.faults.pop(0) if self.server.faults else None
        if fault == "error":
            return self.send_error(503)
        file = Path(self.translate_path(self.path))
        if not file.exists():
            return self.send_error(404)
        data = file.read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if fault == "cut":
            data = data[: len(data) // 2]
        elif fault == "altered" or self.path in self.server.spoilt:
            data = data[:-1] + bytes([data[-1] ^ 1])
        self.wfile.write(data)
        return None

    def log_message(self, *args: Any) -> None:
        """Says nothing."""


@contextmanager
def store(directory: Path) -> Iterator[Store]:
    """Yields the running server."""
    with Store(directory) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()
