"""A stand-in for Telegram's Bot API on this machine, so that a message can be shown without an account."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl


class BotApi:
    """Accepts `sendMessage` and hands each text to `receive`. Use it as a context manager."""

    def __init__(self, receive: Callable[[str], None]) -> None:
        class Handler(_Handler):
            take = staticmethod(receive)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """What to give as `api_url`."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> BotApi:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


class _Handler(BaseHTTPRequestHandler):
    take: Callable[[str], None]

    def do_POST(self) -> None:
        """Answer any method; remember the text of a message."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        fields = dict(parse_qsl(body))
        if self.path.endswith("/sendMessage"):
            self.take(fields.get("text", ""))
        chat = {"id": 1, "type": "private"}
        message = {"message_id": 1, "date": int(time.time()), "chat": chat, "text": fields.get("text", "")}
        answer = json.dumps({"ok": True, "result": message}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Stay quiet: a request line would hold the token."""
