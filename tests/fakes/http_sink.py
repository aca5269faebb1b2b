"""A web server that takes JSON by POST, and answers as told."""

from __future__ import annotations

import json
import socket
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


class _Served:
    """A web server in a thread of its own, as a context manager; `handler` answers each request."""

    def handler(self) -> type[BaseHTTPRequestHandler]:
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
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


@dataclass
class HttpSink(_Served):
    """The server; a context manager. `answers` are (status, headers) of the next requests; then 200."""

    answers: deque[tuple[int, dict[str, str]]] = field(default_factory=deque)
    taken: list[Taken] = field(default_factory=list, repr=False)

    def handler(self) -> type[BaseHTTPRequestHandler]:
        return _handler(self)


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


class EchoServer(_Served):
    """A web server that answers every request with 404 and all it was sent, as many frameworks do; a context
    manager."""

    def handler(self) -> type[BaseHTTPRequestHandler]:
        return _Echo


class _Echo(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        body = f"Cannot {self.command} {self.path} {self.headers['Authorization']}".encode()
        self.send_response(404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST

    def log_message(self, *_: Any) -> None:
        """Nothing on standard error."""


class DrippingServer:
    """Answers one header byte every tenth of a second, for ever."""

    def __enter__(self) -> str:
        self._server = socket.create_server(("127.0.0.1", 0))
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._drip)
        self._thread.start()
        return f"http://127.0.0.1:{self._server.getsockname()[1]}"

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        self._server.close()

    def _drip(self) -> None:
        connection, _ = self._server.accept()
        with connection:
            connection.recv(65536)
            for byte in b"HTTP/1.1 200 OK\r\nX: " + b"x" * 10_000:
                try:
                    connection.send(bytes([byte]))
                except OSError:
                    return
                if self._end.wait(0.1):
                    return
