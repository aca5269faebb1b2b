"""One Docker daemon: connects, lists, inspects, opens logs. The only importer of the docker SDK."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from argus_sched.agent.hosts import DAEMON_URLS, HostSpec, is_daemon_url, without_password
from argus_sched.agent.packs import LogSpec
from argus_sched.agent.reading.stamps import instant, parse_stamp
from argus_sched.agent.sources.absence import absence, behind, timed_out
from argus_sched.agent.sources.answer import Answer, Deadline
from argus_sched.agent.sources.contexts import require_readable, resolved
from argus_sched.agent.sources.ssh import SshDoor
from argus_sched.errors import ArgusError, HostError, MissingExtraError, SourceError

DEFAULT_HOST = "unix:///var/run/docker.sock"
OLDEST_API = "1.24"  # spoken until the daemon has said what it speaks
_PROJECT, _SERVICE = "com.docker.compose.project", "com.docker.compose.service"
_NUMBER, _ONE_OFF = "com.docker.compose.container-number", "com.docker.compose.oneoff"


@dataclass(frozen=True)
class Inspected:
    """What the daemon says of one container, as far as its log is concerned."""

    id: str
    name: str
    labels: Mapping[str, str]
    created: datetime | None
    started: datetime | None
    running: bool
    tty: bool
    driver: str
    driver_options: Mapping[str, str]
    log_path: str

    @property
    def key(self) -> str:
        """Stable across recreation: compose's project, service and number, else the name."""
        parts = [self.labels.get(label, "") for label in (_PROJECT, _SERVICE, _NUMBER)]
        return "/".join(parts) if all(parts) else self.name

    @property
    def rotates(self) -> bool:
        """Whether old records may have gone: every driver but an unbounded json-file drops them some day."""
        return self.driver != "json-file" or "max-size" in self.driver_options


class Daemon:
    """A connection to one daemon; made lazily, so that one that is away costs nothing until it is asked."""

    def __init__(
        self, spec: HostSpec, timeout: float, dated: Callable[[str | None], None] | None = None
    ) -> None:
        self._spec = spec
        self._dated = dated  # told the Date header of each answer
        self.host = spec.docker or (spec.context and f"the context {spec.context}") or _default()
        self._timeout = timeout
        self._door: SshDoor | None = None
        # The SDK's raw requests are its own internals, which its type stubs do not name.
        self._client: Any = None

    @property
    def is_local(self) -> bool:
        """Whether the daemon's files are this machine's."""
        return self.host.startswith(("unix://", "/"))

    def matching(self, spec: LogSpec) -> Sequence[Inspected]:
        """Every container that `spec` selects, stopped ones too; SourceError when there is none."""
        if spec.container is not None:
            return (self._inspect(spec.container),)
        wanted = spec.label or f"{spec.compose_project or ''}/{spec.compose_service or ''}"
        with self._asking(f"list the containers of {wanted}"):
            rows = self._connected().containers(all=True, filters={"label": _label_filter(spec)})
        ids = [
            row["Id"] for row in rows if (row.get("Labels") or {}).get(_ONE_OFF, "False").lower() != "true"
        ]
        found = self._present(ids)
        if not found:
            raise SourceError(f"no container matches {wanted} on {self.host}: start it, or correct the pack")
        return found

    def open_log(self, container: Inspected, tail: int, deadline: Deadline) -> Answer:
        """The answer to `docker logs -t --tail N`; raises SourceError when the daemon refuses."""
        with self._asking(f"read the log of {container.name}"):
            client = self._connected()
            response = client._get(
                client._url("/containers/{0}/logs", container.id),
                params={"stdout": 1, "stderr": 1, "timestamps": 1, "tail": tail},
                stream=True,
                timeout=max(deadline.left, 0.001),
            )
            try:
                client._raise_for_status(response)
            except Exception:
                response.close()
                raise
        return Answer(response, _connection(client, response), container.tty, deadline)

    def close(self) -> None:
        """Give the connections back."""
        if self._client is not None:
            self._client.close()
            self._client = None
        if self._door is not None:
            self._door.close()
            self._door = None

    def _present(self, ids: Sequence[str]) -> list[Inspected]:
        """The containers that still exist, the newest of each key: a deploy shows two for a moment."""
        newest: dict[str, Inspected] = {}
        for container_id in ids:
            try:
                found = self._inspect(container_id)
            except GoneError:
                continue
            other = newest.get(found.key)
            if other is None or (found.created and other.created and found.created > other.created):
                newest[found.key] = found
        return [newest[key] for key in sorted(newest)]

    def _inspect(self, name: str) -> Inspected:
        with self._asking(
            f"inspect the container {name}", missing=f"no such container: {name} on {self.host}"
        ):
            return _inspected(self._connected().inspect_container(name))

    def _connected(self) -> Any:
        """The client; raises HostError when the daemon cannot be reached or does not say who it is."""
        if self._spec.context is None:
            _require_usable(self.host)
        try:
            self._knock()
            if self._client is None:
                self._client = self._connect()
        except ArgusError:
            raise
        except Exception as error:
            raise HostError(absence(error, self.host, self._timeout, self._last_words())) from error
        return self._client

    def _knock(self) -> None:
        """Fail as the socket does: the SDK forgets to close the one with which it could not connect."""
        if self.is_local:
            with socket.socket(socket.AF_UNIX) as door:
                door.settimeout(self._timeout)
                door.connect(self.host.removeprefix("http+").removeprefix("unix://"))

    def _connect(self) -> Any:
        try:
            from docker.api.client import APIClient
        except ImportError:
            raise MissingExtraError("docker", "agent") from None
        settings = self._address() | {"version": OLDEST_API, "timeout": self._timeout}
        client: Any = APIClient(**settings)
        # $REQUESTS_CA_BUNDLE would take the place of the daemon's own authority, and a web proxy its way.
        client.trust_env = False
        try:
            client._version = client._retrieve_server_version()
        except Exception:
            client.close()
            raise
        if (dated := self._dated) is not None:
            client.hooks["response"].append(lambda answer, **_: dated(answer.headers.get("Date")))
        return client

    def _address(self) -> dict[str, Any]:
        """Where the SDK finds the daemon, and how the two trust each other."""
        from docker.tls import TLSConfig
        from docker.utils import kwargs_from_env

        spec = resolved(self._spec, os.environ)
        self.host = spec.docker or self.host
        _require_usable(self.host)
        address: dict[str, Any] = {"base_url": self.host} if spec.docker else dict(kwargs_from_env())
        if self.host.startswith("ssh://"):
            self._door = self._door or SshDoor(self.host, self._timeout)
            address["base_url"] = self._door.host
        if spec.tls:
            require_readable(spec.tls.ca, spec.tls.cert, spec.tls.key)
            address["tls"] = TLSConfig((spec.tls.cert, spec.tls.key), spec.tls.ca, verify=True)
        return address

    def _last_words(self) -> str:
        return self._door.last_words if self._door else ""

    @contextmanager
    def _asking(self, action: str, missing: str = "") -> Iterator[None]:
        """Turns whatever the SDK, requests or the socket raise into one sentence."""
        try:
            yield
        except ArgusError:
            raise
        except Exception as error:
            raise _refusal(error, action, missing, self.host, self._timeout) from error


class GoneError(SourceError):
    """The container does not exist."""


def _refusal(error: Exception, action: str, missing: str, host: str, timeout: float) -> SourceError:
    from docker.errors import APIError

    if isinstance(error, APIError):
        explanation = str(error.explanation or error).strip()
        if error.status_code == 404:
            return GoneError(f"{missing or explanation}: correct the name, or start it")
        if "does not support reading" in explanation:
            return SourceError(f"cannot {action}: {explanation}: use json-file, local or journald")
        return SourceError(f"cannot {action}: {host} answered {error.status_code}: {explanation}")
    causes = list(behind(error))
    if timed_out(causes):
        return SourceError(f"cannot {action}: {host} did not answer within {timeout:g} s")
    return SourceError(f"cannot {action} on {host}: {causes[-1]}")


def _default() -> str:
    return os.environ.get("DOCKER_HOST") or DEFAULT_HOST


def _require_usable(host: str) -> None:
    """Raises HostError for an address that no daemon can have. Of the forms that Docker's own tools take in
    DOCKER_HOST, those are good that say the same as DAEMON_URLS."""
    url = host.removeprefix("http+")
    url = f"tcp://{url}" if "://" not in url else re.sub(r"^https?://", "tcp://", url)
    if not is_daemon_url(url):
        shown = without_password(host)
        also = "" if shown == host else ", without a password"
        raise HostError(f"{shown} cannot be the address of a docker daemon: set {DAEMON_URLS}{also}")


def _connection(client: Any, response: Any) -> Any:
    """The socket an answer comes over; None once it has all arrived, or where the transport has none."""
    try:
        return client._get_raw_response_socket(response)
    except AttributeError:
        return None


def _label_filter(spec: LogSpec) -> list[str]:
    pairs = ((_PROJECT, spec.compose_project), (_SERVICE, spec.compose_service))
    labels = [f"{label}={value}" for label, value in pairs if value]
    return [spec.label] if spec.label else labels


def _inspected(data: Mapping[str, Any]) -> Inspected:
    config, state, host = data.get("Config") or {}, data.get("State") or {}, data.get("HostConfig") or {}
    log = host.get("LogConfig") or {}
    return Inspected(
        id=data["Id"],
        name=str(data.get("Name", "")).lstrip("/"),
        labels=config.get("Labels") or {},
        created=_moment(data.get("Created")),
        started=_moment(state.get("StartedAt")),
        running=bool(state.get("Running")),
        tty=bool(config.get("Tty")),
        driver=log.get("Type") or "",
        driver_options=log.get("Config") or {},
        log_path=data.get("LogPath") or "",
    )


def _moment(text: str | None) -> datetime | None:
    """The daemon writes 0001-01-01 for "never", which no stamp of ours can hold."""
    stamp = parse_stamp((text or "").encode())
    return instant(stamp[0]) if stamp else None
