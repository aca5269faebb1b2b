"""A Docker daemon on a Unix socket: the real HTTP API with real frames, over containers that a test scripts.

    with FakeDocker() as docker:                       # docker.host is a DOCKER_HOST
        web = docker.add("labs-backend")
        web.log("INFO: started", at=T0)                # a line of any length; stored in pieces of 16 KiB
        web.faults.append(Hang(after=10))              # of the next answers; web.faults.clear() mends it

It answers /_ping, /version, /containers/json, /containers/ID/json and /containers/ID/logs. A tail is counted in
stored pieces over both streams, as the daemon does it. `docker.requests` holds every path that was asked for.
"""

from __future__ import annotations

import json
import socketserver
import struct
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

PIECE = 16384
_TYPES = {"stdout": 1, "stderr": 2}


@dataclass(frozen=True)
class Stored:
    """One record as a log driver keeps it; a piece of a longer line has no line feed."""

    at: str
    stream: str
    text: bytes


@dataclass(frozen=True)
class Hang:
    """Send `after` records, then nothing until the daemon stops."""

    after: int = 0


@dataclass(frozen=True)
class Trickle:
    """Send one byte every `pause` seconds."""

    pause: float = 0.02


@dataclass(frozen=True)
class DaemonError:
    """After `after` records, a frame of type 3 with this text; then the end. `times` answers are so."""

    text: str = "Error grabbing logs: unexpected EOF\n"
    after: int = 10**9
    times: int = 10**9


@dataclass(frozen=True)
class CutOff:
    """After `after` records, half a frame; then the connection ends. `times` answers are so."""

    after: int = 0
    times: int = 10**9


@dataclass(frozen=True)
class Damage:
    """The stored records below this index and those from it on are apart: an answer that begins before it
    ends before it, without a word."""

    at: int


@dataclass(frozen=True)
class LeaveOut:
    """An answer that begins before this stretch of stored records lacks it, without a word."""

    start: int
    stop: int


@dataclass(frozen=True)
class Refuse:
    """Answer a request for the log with an HTTP error."""

    status: int = 500
    message: str = "something went wrong"


Fault = Hang | Trickle | DaemonError | CutOff | Damage | LeaveOut | Refuse
UNREADABLE = Refuse(500, "configured logging driver does not support reading")


@dataclass
class FakeContainer:
    """One container; change it at any time."""

    name: str
    id: str
    created: str = "2026-03-14T08:00:00Z"
    started: str = "2026-03-14T08:00:01Z"
    running: bool = True
    tty: bool = False
    driver: str = "json-file"
    driver_options: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    log_path: str = ""
    stored: list[Stored] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    def log(
        self, text: str | bytes, at: str | datetime, stream: str = "stderr", *, ended: bool = True
    ) -> None:
        """Store one line, as pieces of one stamp when it is long; `at` is RFC 3339 or an aware datetime."""
        stamp = at if isinstance(at, str) else _nine_digits(at)
        data = (text.encode() if isinstance(text, str) else text) + (b"\n" if ended else b"")
        for start in range(0, max(len(data), 1), PIECE):
            self.stored.append(Stored(stamp, stream, data[start : start + PIECE]))

    def inspect(self) -> dict[str, Any]:
        """The answer of /containers/ID/json, as far as anyone reads it."""
        return {
            "Id": self.id,
            "Name": f"/{self.name}",
            "Created": self.created,
            "LogPath": self.log_path,
            "State": {"Running": self.running, "StartedAt": self.started},
            "Config": {"Tty": self.tty, "Labels": self.labels},
            "HostConfig": {"LogConfig": {"Type": self.driver, "Config": self.driver_options}},
        }


class FakeDocker:
    """The daemon. Stopping it ends every answer that hangs."""

    def __init__(self) -> None:
        self.containers: dict[str, FakeContainer] = {}
        self.requests: list[str] = []
        self.date: Callable[[], datetime] | None = None  # the clock of its `Date` header; none without one
        self.closing = threading.Event()
        self._folder = tempfile.TemporaryDirectory(prefix="argus-docker-")
        self.socket = Path(self._folder.name) / "docker.sock"
        self._server = _Server(str(self.socket), _Handler)
        self._server.docker = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def host(self) -> str:
        """The DOCKER_HOST."""
        return f"unix://{self.socket}"

    def add(self, name: str, **attributes: Any) -> FakeContainer:
        """A container, running unless told otherwise; an earlier one of this name is replaced."""
        number = f"{len(self.requests) + len(self.containers) + 1:064x}"
        container = FakeContainer(name, attributes.pop("id", number), **attributes)
        self.containers[name] = container
        return container

    def remove(self, name: str) -> None:
        """Forget a container."""
        del self.containers[name]

    def find(self, name: str) -> FakeContainer | None:
        """By name or id."""
        matches = (one for one in self.containers.values() if name in (one.name, one.id))
        return next(matches, None)

    def stop(self) -> None:
        """Go away: the socket is gone, answers that hang end."""
        if self.closing.is_set():
            return
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    request_queue_size = 128
    daemon_threads = True
    docker: FakeDocker

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]  # any request will do


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def address_string(self) -> str:
        return "unix"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's name
        pass

    def send_response(self, code: int, message: str | None = None) -> None:
        self.send_response_only(code, message)
        if self.docker.date is not None:
            self.send_header("Date", format_datetime(self.docker.date().astimezone(UTC), usegmt=True))

    @property
    def docker(self) -> FakeDocker:
        server = self.server
        assert isinstance(server, _Server)
        return server.docker

    def do_GET(self) -> None:
        self.docker.requests.append(self.path)
        url = urlsplit(self.path)
        path = url.path if not url.path.startswith("/v1.") else "/" + url.path.split("/", 2)[2]
        query = {key: values[-1] for key, values in parse_qs(url.query).items()}
        try:
            self._route(path, query)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _route(self, path: str, query: dict[str, str]) -> None:
        if path == "/_ping":
            self._send(200, b"OK")
        elif path == "/version":
            self._json(200, {"ApiVersion": "1.41", "MinAPIVersion": "1.12", "Version": "20.10.24"})
        elif path == "/containers/json":
            self._json(200, self._listed(query))
        else:
            self._of_container(path.split("/"), query)

    def _listed(self, query: dict[str, str]) -> list[dict[str, Any]]:
        wanted = json.loads(query.get("filters", "{}")).get("label", [])
        return [
            {"Id": one.id, "Names": [f"/{one.name}"], "Labels": one.labels}
            for one in list(self.docker.containers.values())
            if (one.running or query.get("all") in ("1", "true", "True"))
            and all(_has_label(one.labels, label) for label in wanted)
        ]

    def _of_container(self, parts: list[str], query: dict[str, str]) -> None:
        container = self.docker.find(parts[2]) if len(parts) == 4 and parts[1] == "containers" else None
        if container is None:
            self._json(404, {"message": f"No such container: {parts[2] if len(parts) > 2 else parts}"})
        elif parts[3] == "json":
            self._json(200, container.inspect())
        else:
            self._logs(container, query)

    def _logs(self, container: FakeContainer, query: dict[str, str]) -> None:
        refusal = next((fault for fault in container.faults if isinstance(fault, Refuse)), None)
        if refusal is not None:
            self._json(refusal.status, {"message": refusal.message})
            return
        stored = list(container.stored)
        first = max(len(stored) - int(query["tail"]), 0) if query.get("tail", "all") != "all" else 0
        stored = _damaged(stored, first, container.faults)
        self.send_response(200)
        self.send_header("Content-Type", "application/vnd.docker.raw-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self._send_records(container, stored)

    def _send_records(self, container: FakeContainer, records: list[Stored]) -> None:
        fault = _next_fault(container)
        for number, record in enumerate(_wire(records, container.tty)):
            if isinstance(fault, Hang | DaemonError | CutOff) and number >= fault.after:
                break
            self._chunk(record, fault)
        if isinstance(fault, Hang):
            self.wfile.flush()
            self.docker.closing.wait()
            self.close_connection = True
        elif isinstance(fault, CutOff):
            self._chunk(struct.pack(">B3xI", 2, 500) + b"2026-03-14T10", None)
            self.close_connection = True
            self.wfile.write(b"0\r\n\r\n")
        else:
            if isinstance(fault, DaemonError):
                self._chunk(frame("daemon", fault.text.encode()), None)
            self.wfile.write(b"0\r\n\r\n")

    def _chunk(self, data: bytes, fault: Fault | None) -> None:
        encoded = b"%x\r\n%s\r\n" % (len(data), data)
        if not isinstance(fault, Trickle):
            self.wfile.write(encoded)
            return
        for at in range(len(encoded)):
            if self.docker.closing.wait(fault.pause):
                return
            self.wfile.write(encoded[at : at + 1])
            self.wfile.flush()

    def _json(self, status: int, value: object) -> None:
        self._send(status, json.dumps(value).encode(), "application/json")

    def _send(self, status: int, body: bytes, kind: str = "text/plain") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def frame(stream: str, payload: bytes) -> bytes:
    """One frame of the multiplexed stream."""
    return struct.pack(">B3xI", {**_TYPES, "daemon": 3}[stream], len(payload)) + payload


def _wire(records: list[Stored], tty: bool) -> Iterator[bytes]:
    for record in records:
        payload = record.at.encode() + b" " + record.text
        if tty and payload.endswith(b"\n"):
            payload = payload[:-1] + b"\r\n"
        yield payload if tty else frame(record.stream, payload)


def _damaged(stored: list[Stored], first: int, faults: list[Fault]) -> list[Stored]:
    """The records from `first` on, less what a damaged file hides."""
    kept = range(first, len(stored))
    for fault in faults:
        if isinstance(fault, Damage) and first < fault.at:
            kept = range(first, fault.at)
        if isinstance(fault, LeaveOut) and first < fault.start:
            return stored[first : fault.start] + stored[fault.stop :]
    return [stored[index] for index in kept]


def _next_fault(container: FakeContainer) -> Fault | None:
    """The fault of this answer; one that counts its times is used up."""
    for index, fault in enumerate(container.faults):
        if isinstance(fault, Damage | LeaveOut | Refuse):
            continue
        if isinstance(fault, DaemonError | CutOff):
            left = fault.times - 1
            container.faults[index : index + 1] = (
                [type(fault)(**{**vars(fault), "times": left})] if left else []
            )
        return fault
    return None


def _has_label(labels: dict[str, str], wanted: str) -> bool:
    key, mark, value = wanted.partition("=")
    return key in labels and (not mark or labels[key] == value)


def _nine_digits(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f") + "000Z"
