"""What the doubles share: JSON over HTTP on a loopback port, every request kept."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qsl, unquote, urlsplit


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    query: dict[str, str]
    body: Any
    headers: dict[str, str]


class Refused(Exception):
    """An answer that is an error: status and message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


Answer = Callable[..., Any]


@dataclass
class Server:
    """`routes`: (method, pattern of the path, answer(asked, *groups) -> JSON or text)."""

    routes: list[tuple[str, str, Answer]] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)

    def __enter__(self) -> Self:
        double = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                place = urlsplit(self.path)
                raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                is_json = "json" in self.headers.get("Content-Type", "json")
                asked = Asked(
                    self.command, unquote(place.path), dict(parse_qsl(place.query)),
                    json.loads(raw or "null") if is_json else raw, dict(self.headers),
                )  # fmt: skip
                double.asked.append(asked)
                status, headers, answer = double.handle(asked)
                data = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
                self.send_response(status)
                kind = "text/plain" if isinstance(answer, str) else "application/json"
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

            do_GET = do_POST = do_DELETE = do_PATCH = do_HEAD = handle_any  # noqa: N815

            def log_message(self, *args: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def handle(self, asked: Asked) -> tuple[int, dict[str, str], Any]:
        """Status, further headers, and JSON or text."""
        for method, pattern, reply in self.routes:
            if asked.method == method and (found := re.fullmatch(pattern, asked.path)):
                try:
                    return 200, {}, reply(asked, *found.groups())
                except Refused as refused:
                    return refused.status, {}, self.error(refused)
        return 404, {}, self.error(Refused(404, f"{asked.method} {asked.path}: not found"))

    def error(self, refused: Refused) -> Any:
        return {"error": {"code": refused.status, "message": refused.message}}

    def sent(self, method: str, ending: str) -> list[Asked]:
        return [a for a in self.asked if a.method == method and a.path.endswith(ending)]
