"""A web server that takes JSON by POST, and answers as told."""

from __future__ import annotations

import json
import threading
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


@dataclass(frozen=True)
class Taken:
    """One request."""

    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class HttpSink:
    """The server; a context manager. `answers` are (status, headers) of the next requests; then 200."""

    answers: deque[tuple[int, dict[str, str]]] = field(default_factory=deque)
    taken: list[Taken] = field(default_factory=list, repr=False)

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def host(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self._server.server_port}"


def _handler(sink: HttpSink) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            sink.taken.append(Taken(self.path, dict(self.headers.items()), body))
            status, headers = sink.answers.popleft() if sink.answers else (200, {})
            self.send_response(status)
            for name, value in {**headers, "Content-Length": "5"}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(b"words")

        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Nothing on standard error."""

    return Handler
