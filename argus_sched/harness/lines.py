"""How workers reach Postgres, and how a line of theirs goes silent: through the proxy, or in namespaces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from argus_sched.errors import SettingsError
from argus_sched.harness.proxy import Proxy
from argus_sched.postgres.embedded import Door
from argus_sched.postgres.witness import address_of, through

LINES = {
    "proxy": "through a TCP proxy, which holds every byte back while a line is silent; works everywhere",
    "namespaces": "each slot in a network namespace of its own, whose packets are lost; needs root and `ip`",
}


@dataclass(frozen=True)
class Way:
    """How a slot reaches the database: its DSN, and the command its own is run by, if any."""

    dsn: str
    within: tuple[str, ...] = ()


class Lines(Protocol):
    """The lines between slots and database."""

    @property
    def door(self) -> Door | None:
        """Where a server of ours must listen besides 127.0.0.1."""

    def open(self, slot: str, dsn: str) -> Way:
        """The way of a slot to the database of `dsn`."""

    def silence(self, slot: str, *directions: str) -> None:
        """Lose or hold `directions` ("up" to the server, "down"; both unless named): neither FIN nor RST."""

    def heal(self, slot: str) -> None:
        """Let everything through again, at once."""


class ProxyLines:
    """Lines within this machine: through the proxy, or direct ones without it, which cannot be silenced."""

    door: Door | None = None

    def __init__(self, proxy: Proxy | None = None) -> None:
        self._proxy = proxy

    def open(self, slot: str, dsn: str) -> Way:
        """Open a line of the proxy for a slot."""
        if self._proxy is None:
            return Way(dsn)
        return Way(through(dsn, self._proxy.open(slot, *address_of(dsn))))

    def silence(self, slot: str, *directions: str) -> None:
        """Hold every byte and the end of the stream until `heal`; SettingsError for a direct line."""
        if self._proxy is None:
            raise SettingsError("the workers connect directly: this fault needs the harness's own lines")
        self._proxy.hold(slot, *directions)

    def heal(self, slot: str) -> None:
        """Hand on what was held."""
        if self._proxy is not None:
            self._proxy.heal(slot)
