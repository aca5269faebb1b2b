"""A page that shows the demo as it goes on: who leads, what the agent says, and where to read more.

It is served on 127.0.0.1 alone and runs no script: the browser asks again every few seconds.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path

from argus_sched.errors import SettingsError

AGAIN = 2  # seconds until the browser asks again
HTML, TEXT = "text/html; charset=utf-8", "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True)
class Scene:
    """What there is to see: the workers, what the agent printed last and when (seconds since 1970), its
    metrics, the last messages, and the file of the report."""

    leader: str
    workers: tuple[str, ...]
    table: str
    at: float
    metrics: bytes
    messages: tuple[str, ...]
    report: Path


@dataclass(frozen=True)
class Answer:
    """One answer over HTTP."""

    body: bytes
    kind: str = HTML
    status: int = 200


class Pages:
    """Serves `scene`, which its owner replaces. Use it as a context manager.

    Port 0 is any free one; raises SettingsError for one that is taken.
    """

    def __init__(self, port: int) -> None:
        self.scene: Scene | None = None

        class Handler(_Handler):
            pages = self

        try:
            self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        except (OSError, OverflowError) as error:
            raise SettingsError(
                f"port {port} of 127.0.0.1 cannot be served, name another with --port: {error}"
            ) from error
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/"

    def answer(self, path: str) -> Answer:
        """What a path gets: the page, the agent's metrics, the report, or 404."""
        scene = self.scene
        if path == "/":
            return Answer(page(scene).encode())
        if path == "/metrics" and scene is not None:
            return Answer(scene.metrics, TEXT)
        if path == "/report" and scene is not None:
            return Answer(scene.report.read_bytes())
        return Answer(f"there is nothing at {path}\n".encode(), TEXT, 404)

    def __enter__(self) -> Pages:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


class _Handler(BaseHTTPRequestHandler):
    pages: Pages

    def do_GET(self) -> None:
        """Answer one request."""
        answer = self.pages.answer(self.path.partition("?")[0])
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, *_: object) -> None:
        """Stay quiet: the terminal belongs to the story."""


def page(scene: Scene | None) -> str:
    """The page as one HTML document; without a scene it says that the story is not over."""
    style = files("argus_sched.harness").joinpath("report.css").read_text()
    body = "<p>The story is still being told in the terminal.</p>" if scene is None else _body(scene)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="refresh" content="{AGAIN}"><link rel="icon" href="data:,">'
        f"<title>argus-sched, live</title><style>{style}</style></head>\n"
        f"<body><main><header><h1>argus-sched, live</h1></header>\n{body}</main></body></html>\n"
    )


def _body(scene: Scene) -> str:
    looked = datetime.fromtimestamp(scene.at, UTC).strftime("%H:%M:%S UTC")
    workers = "".join(f"<li>{escape(worker)}</li>" for worker in scene.workers)
    messages = "".join(_block(message) for message in reversed(scene.messages))
    return (
        f'<h2>Leader: <span id="leader">{escape(scene.leader)}</span></h2>\n<ul>{workers}</ul>\n'
        f"<h2>What the agent said at {looked}</h2>\n{_block(scene.table)}\n"
        + (f"<h2>Messages, newest first</h2>\n{messages}\n" if messages else "")
        + '<p><a href="/report">The two failovers as a picture</a> · '
        '<a href="/metrics">The metrics for Prometheus</a></p>\n'
    )


def _block(text: str) -> str:
    return f"<pre>{escape(text.rstrip())}</pre>"
