"""One Docker daemon: connects, lists, inspects, opens logs; says in a sentence what went wrong."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from argus_sched.agent.hosts import DAEMON_URLS, HostSpec, is_daemon_url, without_password
from argus_sched.agent.packs import LogSpec
from argus_sched.agent.reading.stamps import instant, parse_stamp
from argus_sched.agent.sources.absence import absence, behind, timed_out
from argus_sched.agent.sources.answer import Answer, Deadline
from argus_sched.agent.sources.contexts import resolved
from argus_sched.agent.sources.engine import AbsentError, Dated, Engine, RefusedError
from argus_sched.errors import ArgusError, HostError, SourceError

if TYPE_CHECKING:
    from argus_sched.agent.sources.ssh import SshDoor

DEFAULT_HOST = "unix:///var/run/docker.sock"
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

    def __init__(self, spec: HostSpec, timeout: float, dated: Dated | None = None) -> None:
        self._spec = spec
        self._dated = dated
        self.host = spec.docker or (spec.context and f"the context {spec.context}") or _default()
        self._timeout = timeout
        self._door: SshDoor | None = None
        self._engine: Engine | None = None

    @property
    def is_local(self) -> bool:
        """Whether the daemon's files are this machine's."""
        return self.host.startswith("unix://")

    def matching(self, spec: LogSpec) -> Sequence[Inspected]:
        """Every container that `spec` selects, stopped ones too; SourceError when there is none."""
        if spec.container is not None:
            return (self._inspect(spec.container),)
        wanted = spec.label or f"{spec.compose_project or ''}/{spec.compose_service or ''}"
        with self._asking(f"list the containers of {wanted}"):
            rows = self._connected().listed(_label_filter(spec))
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
            body = self._connected().log(container.id, tail, max(deadline.left, 0.001))
        return Answer(body, container.tty, deadline)

    def close(self) -> None:
        """Give the connections back."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None
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
            return _inspected(self._connected().inspected(name))

    def _connected(self) -> Engine:
        """The daemon's end; raises HostError when it cannot be reached or does not say who it is."""
        if self._engine is None:
            if self._spec.context is None:
                _require_usable(self.host)
            try:
                self._engine = self._connect()
            except ArgusError:
                raise
            except Exception as error:
                raise self._absent(error) from error
        return self._engine

    def _connect(self) -> Engine:
        spec = resolved(self._spec, os.environ)
        self.host = spec.docker or self.host
        _require_usable(self.host)
        if path := _socket_path(self.host):
            from argus_sched.agent.sources.unix_engine import UnixEngine

            return UnixEngine(path, self._timeout, self._dated)
        from argus_sched.agent.sources.sdk_engine import SdkEngine

        return SdkEngine(self._door_to(spec.docker), spec.tls, self._timeout, self._dated)

    def _door_to(self, url: str | None) -> str | None:
        """`url`, or where it leads through ssh, the socket here whose connections ssh carries there."""
        if not self.host.startswith("ssh://"):
            return url
        from argus_sched.agent.sources.ssh import SshDoor

        self._door = self._door or SshDoor(self.host, self._timeout)
        return self._door.host

    def _absent(self, error: Exception) -> HostError:
        asked = self._spec.docker or self._spec.context
        named_by = f"hosts.{self._spec.name}" if asked else "DOCKER_HOST"
        return HostError(absence(error, self.host, self._timeout, self._last_words(), named_by))

    def _last_words(self) -> str:
        return self._door.last_words if self._door else ""

    @contextmanager
    def _asking(self, action: str, missing: str = "") -> Iterator[None]:
        """Turns whatever the engine or its socket raise into one sentence."""
        try:
            yield
        except ArgusError:
            raise
        except AbsentError as error:
            raise self._absent(error) from error
        except Exception as error:
            raise _refusal(error, action, missing, self.host, self._timeout) from error


class GoneError(SourceError):
    """The container does not exist."""


def _refusal(error: Exception, action: str, missing: str, host: str, timeout: float) -> SourceError:
    if isinstance(error, RefusedError):
        if error.status == 404:
            return GoneError(f"{missing or error.words}: correct the name, or start it")
        if "does not support reading" in error.words:
            return SourceError(f"cannot {action}: {error.words}: use json-file, local or journald")
        return SourceError(f"cannot {action}: {host} answered {error.status}: {error.words}")
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


def _socket_path(host: str) -> str:
    """The Unix socket that `host` names, empty for another machine's daemon."""
    url = host.removeprefix("http+")
    return url.removeprefix("unix://") if url.startswith("unix://") else ""


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
