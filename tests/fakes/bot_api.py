"""A Bot API server on a real socket: takes sendMessage, checks it as Telegram does, answers as told.

Answers are taken from `script` in order; when it is empty the server behaves: it checks the length in UTF-16
units and every entity, and gives the message a number.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs

TOKEN = "123456789:AAtestTokenThatIsLongEnough0123456789"
LIMIT = 4096


@dataclass(frozen=True)
class Answer:
    """An answer as it goes over the wire; `delivered` says whether the chat has the message nevertheless."""

    status: int
    body: bytes
    delivered: bool = False


@dataclass(frozen=True)
class Drop:
    """Close the connection without an answer."""

    delivered: bool = False


@dataclass(frozen=True)
class Hang:
    """Say nothing until the server closes."""

    delivered: bool = False


@dataclass(frozen=True)
class Delivered:
    """One message in a chat."""

    chat: str
    text: str
    entities: tuple[dict[str, Any], ...]
    silent: bool
    thread: str | None
    reply_to: int | None
    number: int


def error(answer: dict[str, Any]) -> Answer:
    """The answer of a handed case."""
    return Answer(answer["error_code"], json.dumps(answer).encode())


def refusal(code: int, description: str, **parameters: Any) -> Answer:
    """An error as api.telegram.org words it."""
    body: dict[str, Any] = {"ok": False, "error_code": code, "description": description}
    return error({**body, "parameters": parameters} if parameters else body)


@dataclass
class BotApi:
    """The server; a context manager. `requests` are all bodies it took, `chats` what was delivered."""

    script: deque[Answer | Drop | Hang] = field(default_factory=deque)
    requests: list[dict[str, str]] = field(default_factory=list)
    delivered: list[Delivered] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._closing = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """The root, for `api_url`."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def texts(self) -> list[str]:
        """The texts that reached a chat, in order."""
        return [message.text for message in self.delivered]

    def answer(self, *answers: Answer | Drop | Hang) -> None:
        """Answer the next requests so."""
        self.script.extend(answers)

    def take(self, path: str, body: dict[str, str]) -> Answer | Drop:
        """Decide about one request; blocks for a Hang."""
        self.requests.append(body)
        if path != f"/bot{TOKEN}/sendMessage":
            return refusal(401, "Unauthorized")
        scripted = self.script.popleft() if self.script else None
        if scripted is None:
            return self._behave(body)
        if scripted.delivered:
            self._deliver(body)
        if isinstance(scripted, Hang):
            self._closing.wait()
            return Drop()
        return scripted

    def _behave(self, body: dict[str, str]) -> Answer:
        problem = _problem(body)
        if problem:
            return refusal(400, f"Bad Request: {problem}")
        message = self._deliver(body)
        chat = {"id": -1, "type": "group", "title": "ops"}
        result = {"message_id": message.number, "date": 1, "chat": chat, "text": message.text}
        return Answer(200, json.dumps({"ok": True, "result": result}).encode())

    def _deliver(self, body: dict[str, str]) -> Delivered:
        reply = json.loads(body.get("reply_parameters", "{}"))
        message = Delivered(
            body["chat_id"],
            body["text"],
            tuple(json.loads(body.get("entities", "[]"))),
            body.get("disable_notification", "").lower() == "true",
            body.get("message_thread_id"),
            reply.get("message_id"),
            len(self.delivered) + 1,
        )
        self.delivered.append(message)
        return message


def _problem(body: dict[str, str]) -> str | None:
    length = len(body["text"].encode("utf-16-le")) // 2
    if not body["text"].strip():
        return "message text is empty"
    if length > LIMIT:
        return "message is too long"
    for entity in json.loads(body.get("entities", "[]")):
        if entity["length"] <= 0 or entity["offset"] < 0 or entity["offset"] + entity["length"] > length:
            return f"can't parse entities: entity {entity} is outside the text"
    return None


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    request_queue_size = 256


def _handler(api: BotApi) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # A client that keeps its connection would keep this thread, and with it the server's end.
        timeout = 5

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"])).decode()
            body = {key: values[0] for key, values in parse_qs(raw, keep_blank_values=True).items()}
            answer = api.take(self.path, body)
            self.close_connection = True
            if isinstance(answer, Drop):
                return
            head = f"HTTP/1.1 {answer.status} X\r\nContent-Length: {len(answer.body)}\r\nConnection: close\r\n\r\n"
            self.wfile.write(head.encode() + answer.body)

        def log_message(self, *_: Any) -> None:
            """Nothing on standard error."""

    return Handler
