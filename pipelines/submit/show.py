"""`--show`: the requests that a client would send, without sending them.

The real client speaks to a recorder on this machine, which answers as the platform would, far
enough for the client to go on; what it asks to be made is printed with the platform's own address.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

_STORAGE = "STORAGE_EMULATOR_HOST"
# In the answers, where the platform would put an id.
_ID = str(uuid.UUID(int=0))


@dataclass(frozen=True)
class Recorded:
    """A request that would change something: method, path with query, body as JSON."""

    method: str
    path: str
    body: Any


class Recorder:
    """A server on a loopback port: `address`, and the requests that it got."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self.address = f"http://127.0.0.1:{server.server_address[1]}"
        self.requests: list[Recorded] = []


@contextlib.contextmanager
def recorder() -> Iterator[Recorder]:
    """Runs a recorder while the context lasts."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "{}")
            if self.command != "GET" and not self.path.startswith("/storage/"):
                recorded.requests.append(Recorded(self.command, self.path, body))
            data = json.dumps(_reply(self.command, self.path, body)).encode()
            # A bucket that may not be looked at is left alone.
            self.send_response(403 if self.path.startswith("/storage/") else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def log_message(self, *args: Any) -> None:
            """Says nothing: the requests are printed as a whole."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    recorded = Recorder(server)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    # Google's client looks at the bucket of the artifacts, too.
    before = os.environ.get(_STORAGE)
    os.environ[_STORAGE] = recorded.address
    try:
        yield recorded
    finally:
        os.environ.pop(_STORAGE)
        os.environ.update({_STORAGE: before} if before else {})
        server.shutdown()
        server.server_close()


def _reply(method: str, path: str, body: Any) -> Any:
    """Returns what a platform with one experiment would say."""
    place = urlsplit(path)
    if method != "GET":
        # Both name what they have made; a client reads the names that it knows.
        kind = place.path.rpartition("/")[2]
        asked = parse_qs(place.query).get("pipelineJobId", [_ID])[0]
        ids = {"run_id": _ID, "recurring_run_id": _ID, "experiment_id": _ID}
        vertex = place.path.startswith("/v1/projects/")
        made = {"name": f"{place.path.removeprefix('/v1/')}/{asked}"} if vertex else ids
        return {**(body if kind else {}), **made}
    if place.path.endswith("/experiments"):
        return {"experiments": [{"experiment_id": _ID}]}
    return {}


def printable(recorded: Recorded, address: str) -> str:
    """Returns a request as JSON, addressed to the platform."""
    shown = {"method": recorded.method, "url": address + recorded.path, "body": recorded.body}
    return json.dumps(shown, indent=2, ensure_ascii=False)
