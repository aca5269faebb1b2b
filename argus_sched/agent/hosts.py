"""The machines that sources are on: how they are named, and whether one could be reached in a pass.

The machine the agent runs on has no node in the target tree: whoever can say that it is down is up. Its
Docker daemon is `local`. Every other machine is one node, `host:NAME`, shared by all applications.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from argus_sched.agent.check import Node

LOCAL = "local"
DAEMON_URLS = "unix:///PATH, tcp://HOST:PORT or ssh://USER@HOST"
# What ssh could take for an option, and what a shell or a label could trip over, is no name of a machine.
_MACHINE = re.compile(r"[A-Za-z0-9:][A-Za-z0-9._:-]*")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_PASSWORD = re.compile(r"((?:^|//)[^/@:]*):[^/].*@")
_LOOPBACK = ("localhost", "::1", "ip6-localhost")


@dataclass(frozen=True)
class TlsFiles:
    """The paths with which a daemon is trusted (`ca`), and with which it trusts us."""

    ca: str
    cert: str
    key: str


@dataclass(frozen=True)
class HostSpec:
    """One Docker daemon: its URL, or the docker context that has it; neither means $DOCKER_HOST."""

    name: str = LOCAL
    docker: str | None = None
    tls: TlsFiles | None = None
    context: str | None = None

    @property
    def machine(self) -> str | None:
        """The machine the URL names; None for a socket and for a context, which is read when it is needed."""
        return urlsplit(self.docker).hostname if self.docker else None


Hosts = Mapping[str, HostSpec]  # by name


def without_password(address: str) -> str:
    """`address` as people may see it; what stands before the last `@` may hold a password."""
    return _PASSWORD.sub(r"\1:***@", address)


def is_daemon_url(address: str) -> bool:
    """Whether `address` has one of the forms of DAEMON_URLS and no password."""
    try:
        url = urlsplit(address)
        port = url.port
    except ValueError:
        return False
    if url.query or url.fragment or url.password is not None:
        return False
    if url.scheme == "unix":
        return url.path.startswith("/") and not url.netloc
    return _is_remote(url) and (port is not None or url.scheme == "ssh")


def _is_remote(url: SplitResult) -> bool:
    user = url.username is None or (url.scheme == "ssh" and _USER.fullmatch(url.username) is not None)
    machine = url.hostname is not None and _MACHINE.fullmatch(url.hostname) is not None
    return url.scheme in ("tcp", "ssh") and url.path in ("", "/") and user and machine


def host_label(name: str) -> str | None:
    """The node of the Docker host `name`; None for the agent's own."""
    return None if name == LOCAL else f"host:{name}"


def machine_label(machine: str, hosts: Hosts) -> str | None:
    """The node of a database's `machine`, by the name it has in `hosts` if any; None for the agent's own.

    A folder of Unix sockets is on the agent's own machine, as libpq has it.
    """
    if not machine or machine.startswith(("/", "@", "127.")) or machine in _LOOPBACK:
        return None
    named = (host.name for host in hosts.values() if host.machine == machine)
    return f"host:{next(named, machine)}"


def host_node(label: str | None, problem: str = "") -> tuple[Node, ...]:
    """What one look says of its host: that it could be reached, or why not; nothing without a label."""
    return (Node("", label, None, not problem, problem),) if label else ()


def agreed(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Each node once. Of what several looks say of one host it counts that somebody reached it."""
    found: dict[Node | str, Node] = {}
    for node in nodes:
        key = node if node.app else node.source
        if key not in found or (not node.app and node.up):
            found[key] = node
    return tuple(found.values())


class Roll:
    """Who answered in a pass, so that a host that answers nobody is not waited for by everybody."""

    def __init__(self) -> None:
        self._answered: set[str] = set()
        self._silent: dict[str, str] = {}

    def note(self, nodes: Iterable[Node]) -> None:
        """Remember what one look found out about hosts."""
        for node in nodes:
            if not node.app:
                if node.up:
                    self._answered.add(node.source)
                else:
                    self._silent.setdefault(node.source, node.problem)

    def absent(self, label: str | None) -> str:
        """Why the host need not be asked again in this pass; empty when it should."""
        return "" if label is None or label in self._answered else self._silent.get(label, "")
