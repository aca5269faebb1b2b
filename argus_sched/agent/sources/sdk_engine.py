"""A Docker daemon on another machine, through the docker SDK. Its only importer."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from argus_sched.agent.hosts import TlsFiles
from argus_sched.agent.sources.contexts import require_readable
from argus_sched.agent.sources.engine import Dated, RefusedError
from argus_sched.errors import MissingExtraError

OLDEST_API = "1.24"  # spoken until the daemon has said what it speaks
BLOCK = 1 << 16


class SdkEngine:
    """The daemon at `url`, with the certificates `tls`; implements `Engine`.

    Without a `url` both are those of Docker's own variables. Raises RefusedError, and whatever else the SDK,
    requests or a socket may raise.
    """

    def __init__(
        self, url: str | None, tls: TlsFiles | None, timeout: float, dated: Dated | None = None
    ) -> None:
        try:
            from docker.api.client import APIClient
        except ImportError:
            raise MissingExtraError("docker", "agent") from None
        settings = _address(url, tls) | {"version": OLDEST_API, "timeout": timeout}
        # The SDK's raw requests are its own internals, which its type stubs do not name.
        client: Any = APIClient(**settings)
        # $REQUESTS_CA_BUNDLE would take the place of the daemon's own authority, and a web proxy its way.
        client.trust_env = False
        try:
            client._version = client._retrieve_server_version()
        except Exception:
            client.close()
            raise
        if dated is not None:
            client.hooks["response"].append(lambda answer, **_: dated(answer.headers.get("Date")))
        self._client = client

    def listed(self, labels: Sequence[str]) -> Sequence[Mapping[str, Any]]:
        """See `Engine`."""
        with _refusals():
            found: Sequence[Mapping[str, Any]] = self._client.containers(
                all=True, filters={"label": list(labels)}
            )
            return found

    def inspected(self, name: str) -> Mapping[str, Any]:
        """See `Engine`."""
        with _refusals():
            found: Mapping[str, Any] = self._client.inspect_container(name)
            return found

    def log(self, container_id: str, tail: int, seconds: float) -> _Body:
        """See `Engine`."""
        with _refusals():
            response = self._client._get(
                self._client._url("/containers/{0}/logs", container_id),
                params={"stdout": 1, "stderr": 1, "timestamps": 1, "tail": tail},
                stream=True,
                timeout=seconds,
            )
            try:
                self._client._raise_for_status(response)
            except Exception:
                response.close()
                raise
        return _Body(response, _line(self._client, response))

    def close(self) -> None:
        """See `Engine`."""
        self._client.close()


class _Body:
    """One answer; implements `LogBody`."""

    def __init__(self, response: Any, line: Any) -> None:
        self._response = response
        self._line = line

    def blocks(self) -> Iterator[bytes]:
        """See `LogBody`."""
        yield from self._response.raw.stream(BLOCK, decode_content=False)

    def cut(self) -> None:
        """See `LogBody`."""
        raw = getattr(self._line, "_sock", self._line)
        if isinstance(raw, socket.socket):
            raw.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """See `LogBody`."""
        self._response.close()


@contextmanager
def _refusals() -> Iterator[None]:
    from docker.errors import APIError

    try:
        yield
    except APIError as error:
        raise RefusedError(error.status_code or 0, str(error.explanation or error).strip()) from error


def _address(url: str | None, tls: TlsFiles | None) -> dict[str, Any]:
    """Where the SDK finds the daemon, and how the two trust each other."""
    from docker.tls import TLSConfig
    from docker.utils import kwargs_from_env

    address: dict[str, Any] = {"base_url": url} if url else dict(kwargs_from_env())
    if tls:
        require_readable(tls.ca, tls.cert, tls.key)
        address["tls"] = TLSConfig((tls.cert, tls.key), tls.ca, verify=True)
    return address


def _line(client: Any, response: Any) -> Any:
    """The socket an answer comes over; None once it has all arrived, or where the transport has none."""
    try:
        return client._get_raw_response_socket(response)
    except AttributeError:
        return None
