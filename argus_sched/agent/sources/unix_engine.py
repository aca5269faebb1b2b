"""A Docker daemon behind a Unix socket, asked without the docker SDK.

Importing the SDK takes a tenth of a second, and a check runs every minute.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping, Sequence
from http.client import HTTPConnection, HTTPResponse
from typing import Any
from urllib.parse import quote, urlencode

from argus_sched.agent.sources.engine import AbsentError, Dated, RefusedError

BLOCK = 1 << 16


class UnixEngine:
    """The daemon at the socket `path`; implements `Engine`. Each request has a connection of its own.

    Raises AbsentError where nobody listens, RefusedError, and whatever else a socket or HTTP may raise.
    """

    def __init__(self, path: str, timeout: float, dated: Dated | None = None) -> None:
        self._path = path
        self._timeout = timeout
        self._dated: Dated | None = None
        # A daemon refuses versions that are too old for it, and does not know those that are too new.
        self._version = "/v" + str(self._json("/version")["ApiVersion"])
        self._dated = dated

    def listed(self, labels: Sequence[str]) -> Sequence[Mapping[str, Any]]:
        """See `Engine`."""
        query = {"all": 1, "filters": json.dumps({"label": list(labels)})}
        found: Sequence[Mapping[str, Any]] = self._json(f"{self._version}/containers/json", query)
        return found

    def inspected(self, name: str) -> Mapping[str, Any]:
        """See `Engine`."""
        found: Mapping[str, Any] = self._json(f"{self._version}/containers/{quote(name, safe='')}/json")
        return found

    def log(self, container_id: str, tail: int, seconds: float) -> _Body:
        """See `Engine`."""
        query = {"stdout": 1, "stderr": 1, "timestamps": 1, "tail": tail}
        return self._ask(f"{self._version}/containers/{container_id}/logs", query, seconds)

    def close(self) -> None:
        """Nothing is kept open between requests."""

    def _json(self, path: str, query: Mapping[str, Any] | None = None) -> Any:
        body = self._ask(path, query or {}, self._timeout)
        try:
            return json.loads(body.rest())
        finally:
            body.close()

    def _ask(self, path: str, query: Mapping[str, Any], seconds: float) -> _Body:
        line = _connected(self._path, seconds)
        try:
            line.request("GET", f"{path}?{urlencode(query)}" if query else path)
            body = _Body(line, line.sock, line.getresponse())
        except BaseException:
            line.close()
            raise
        if self._dated is not None:
            self._dated(body.response.getheader("Date"))
        if body.response.status >= 400:
            raise _refused(body)
        return body


class _Body:
    """One answer; implements `LogBody`."""

    def __init__(self, line: HTTPConnection, door: socket.socket, response: HTTPResponse) -> None:
        self.response = response
        self._line = line
        self._door = door  # the line forgets it when the daemon says that it will hang up

    def blocks(self) -> Iterator[bytes]:
        """See `LogBody`."""
        while block := self.response.read1(BLOCK):
            yield block

    def rest(self) -> bytes:
        """All of it."""
        return self.response.read()

    def cut(self) -> None:
        """See `LogBody`."""
        self._door.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """See `LogBody`."""
        self.response.close()
        self._line.close()


def _connected(path: str, seconds: float) -> HTTPConnection:
    line = HTTPConnection("docker", timeout=seconds)
    line.sock = socket.socket(socket.AF_UNIX)
    line.sock.settimeout(seconds)
    try:
        line.sock.connect(path)
    except OSError as error:
        line.close()
        raise AbsentError from error
    return line


def _refused(body: _Body) -> RefusedError:
    """The daemon's words: a JSON object with a message, or plain text from whatever stands before it."""
    try:
        text = body.rest()
    finally:
        body.close()
    try:
        words = str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        words = text.decode(errors="replace") or body.response.reason
    return RefusedError(body.response.status, words.strip())
