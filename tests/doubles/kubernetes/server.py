"""HTTP over the API: paths, JSON, chunked streams of watches and logs."""

from __future__ import annotations

import contextlib
import json
import re
import select
import subprocess
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.doubles.kubernetes.api import Api, Request, discovery, readable
from tests.doubles.kubernetes.engine import Engine
from tests.doubles.kubernetes.status import Json, Refused, beyond_the_double
from tests.doubles.kubernetes.store import KINDS, PODS

_PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/v1(?:/namespaces/(?P<namespace>[^/]+))?"
    r"/(?P<plural>[a-z]+)(?:/(?P<name>[^/]+)(?:/(?P<part>log|status))?)?"
)
# How often a silent stream looks whether it was cut.
_BREATH_SECONDS = 0.1


class Server(ThreadingHTTPServer):
    """`requests`: (method, path with query) of all that was asked, in order."""

    daemon_threads = True

    def __init__(self, api: Api, engine: Engine) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.api, self.engine = api, engine
        self.requests: list[tuple[str, str]] = []
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def close(self) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up in the middle is no news."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def answer(self) -> None:
        self.server.requests.append((self.command, self.path))
        place = urlsplit(self.path)
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            if known := discovery(place.path.rstrip("/")):
                self.send(200, known)
                return
            request = self.parse(
                place.path, dict(parse_qsl(place.query)), json.loads(raw or "null")
            )
            if request.part == "log":
                self.send_log(request)
                return
            answer = self.server.api.answer(request)
            if isinstance(answer, tuple):
                self.send(*answer)
            else:
                self.stream("application/json", (json.dumps(e).encode() + b"\n" for e in answer))
        except Refused as refused:
            self.send(refused.code, refused.body())

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815

    def log_message(self, *args: Any) -> None:
        """`Server.requests` keeps them."""

    def parse(self, path: str, query: dict[str, str], body: Any) -> Request:
        found = _PATH.fullmatch(path)
        fits = [
            kind for kind in KINDS
            if found and (kind.group, kind.plural) == (found["group"] or "", found["plural"])
        ]  # fmt: skip
        if not found or not fits:
            message = "the server could not find the requested resource"
            raise Refused(404, "NotFound", message)
        kind = self.headers.get("Content-Type", "").split(";")[0]
        return Request(
            self.command, fits[0], found["namespace"] or "", found["name"] or "",
            found["part"] or "", query, body, kind,
        )  # fmt: skip

    def send(self, code: int, answer: Json) -> None:
        data = json.dumps(answer).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream(self, kind: str, chunks: Generator[bytes, None, None]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        with contextlib.closing(chunks):
            for chunk in chunks:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
                self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def send_log(self, request: Request) -> None:
        api = self.server.api
        api.check(request)
        if request.flag("previous"):
            raise beyond_the_double("log of a container before this one")
        pod = api.store.get(PODS, request.namespace, request.name)
        if not readable(pod, request.query.get("container", "")):
            self.stream("text/plain", (_ for _ in ()))
            return
        options = [f"--tail={request.query.get('tailLines', 'all')}"]
        options += ["--follow"] if request.flag("follow") else []
        options += ["--timestamps"] if request.flag("timestamps") else []
        if since := request.query.get("sinceSeconds"):
            options.append(f"--since={since}s")
        container = self.server.engine.container(request.namespace, request.name)
        limit = int(request.query.get("limitBytes") or 0)
        self.stream("text/plain", self.log(self.server.engine.follow(container, *options), limit))

    def log(self, process: subprocess.Popen[bytes], limit: int) -> Generator[bytes, None, None]:
        """Yields what the process prints, until it ends, the streams are cut or `limit` bytes."""
        store, sent = self.server.api.store, 0
        cuts = store.cuts
        assert process.stdout is not None
        with process:
            try:
                while not store.closed and cuts == store.cuts:
                    if not select.select([process.stdout], [], [], _BREATH_SECONDS)[0]:
                        continue
                    data = process.stdout.read1(65536)  # type: ignore[attr-defined]
                    data = data[: limit - sent] if limit else data
                    if not data:
                        return
                    sent += len(data)
                    yield data
            finally:
                process.kill()
