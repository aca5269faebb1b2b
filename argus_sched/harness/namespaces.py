"""Lines as real networks: each slot in a network namespace, joined to this machine by a pair of devices.

A silent direction loses its packets on the way: they are addressed to a device that does not exist, so the
receiver's kernel discards them, and the sender's, which knows nothing of it, retransmits until it gives up.
A DROP rule at the sender would be no loss on the way: its kernel is told, and keeps such a segment as unsent.

Nothing of the machine's own network changes: no rule, no sysctl, no route but those of the links made here.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from argus_sched.errors import SettingsError, SourceError
from argus_sched.harness.blocks import SLOTS, Block, block_of, in_order, is_routed
from argus_sched.harness.lines import Way
from argus_sched.harness.proxy import DIRECTIONS, Proxy
from argus_sched.harness.side_servers import find_program
from argus_sched.postgres.embedded import Door
from argus_sched.postgres.witness import address_of, through

INNER = "argus0"
# Set by us, so that no device manager gives the links others.
HOST_MAC, SLOT_MAC, NOWHERE = "02:00:00:00:00:01", "02:00:00:00:00:02", "02:00:00:00:00:00"
CAP_NET_ADMIN, CAP_SYS_ADMIN = 12, 21


class NamespaceLines:
    """A namespace for each slot, made on entering and gone on leaving; a `proxy` stands at the other end."""

    def __init__(self, run: str, slots: Sequence[str], proxy: Proxy | None = None) -> None:
        if len(slots) > SLOTS:
            raise SettingsError(
                f"{len(slots)} slots are more than a run has addresses for: use up to {SLOTS}"
            )
        self._run = run
        self._places = {slot: place for place, slot in enumerate(slots)}
        self._proxy = proxy
        self._claim: socket.socket | None = None
        self.block = Block(0)

    @property
    def door(self) -> Door:
        """The address of this machine, for this run's slots alone."""
        return Door(self.block.host, str(self.block.network))

    def open(self, slot: str, dsn: str) -> Way:
        """The way of a slot that starts in its namespace."""
        host, port = self.block.host, address_of(dsn)[1]
        if self._proxy is not None:
            port = self._proxy.open(slot, *address_of(dsn), listen=host)
        return Way(through(dsn, port, host), (_program(), "netns", "exec", self.block.name(slot)))

    def silence(self, slot: str, *directions: str) -> None:
        """Lose every packet in `directions` until `heal`."""
        for direction in directions or DIRECTIONS:
            self._address(slot, direction, NOWHERE)

    def heal(self, slot: str) -> None:
        """Let packets arrive again; what was lost stays so until its sender tries again."""
        self._address(slot, "up", HOST_MAC)
        self._address(slot, "down", SLOT_MAC)
        if self._proxy is not None:
            self._proxy.heal(slot)

    def close(self) -> None:
        """Remove every namespace and link of the run."""
        for slot in self._places:
            remove(self.block.name(slot))
        if self._claim is not None:
            self._claim.close()

    def __enter__(self) -> NamespaceLines:
        sweep()
        self.block, self._claim = _free_block(self._run)
        try:
            for slot, place in self._places.items():
                self._join(self.block.name(slot), self.block.slot(place))
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _join(self, name: str, address: str) -> None:
        """Make a namespace and the link to it, each end knowing the other without having to ask."""
        host = self.block.host
        _ip("netns", "add", name)
        link = (
            f"link add {name} address {HOST_MAC} type veth peer name {INNER} address {SLOT_MAC} netns {name}"
        )
        _ip_batch((), [link, *_end(name, host, address, SLOT_MAC)])
        _ip_batch(("-n", name), ["link set lo up", *_end(INNER, address, host, HOST_MAC)])

    def _address(self, slot: str, direction: str, mac: str) -> None:
        """Send what goes in one direction to a device."""
        name = self.block.name(slot)
        if direction == "up":
            _ip("-n", name, *_neighbour(self.block.host, mac, INNER).split())
        else:
            _ip(*_neighbour(self.block.slot(self._places[slot]), mac, name).split())


def obstacle() -> str:
    """Why no namespace can be made here, and what to do; empty when it can."""
    if find_program("ip") is None:
        return "there is no program `ip`: install it (Debian package iproute2)"
    held = re.search(r"^CapEff:\s*(\w+)", Path("/proc/self/status").read_text(), re.MULTILINE)
    rights = int(held[1], 16) if held else 0
    if os.geteuid() != 0 or not all(rights >> number & 1 for number in (CAP_NET_ADMIN, CAP_SYS_ADMIN)):
        return "this process may make none: run it as root with CAP_NET_ADMIN and CAP_SYS_ADMIN"
    return ""


def sweep() -> None:
    """Remove what runs that were killed have left, and touch nothing of one that is still there."""
    for name in _ours():
        block = block_of(name)
        claim = block and _claim(block)
        if claim:
            with claim:
                remove(name)


def remove(name: str) -> None:
    """Remove a namespace and its link, as far as they are there."""
    # The link first: a namespace lives on unseen while a process is left in it.
    for kind in ("link", "netns"):
        with contextlib.suppress(SourceError):
            _ip(kind, "delete", name)


def _ours() -> list[str]:
    links = [str(link["ifname"]) for link in _ip_json("link", "show")]
    spaces = [line.split()[0] for line in _ip("netns", "list").splitlines() if line.strip()]
    return [name for name in dict.fromkeys(links + spaces) if block_of(name)]


def _free_block(run: str) -> tuple[Block, socket.socket]:
    """A block that no other run has and that leads nowhere yet, and the claim to it."""
    routes = [str(route["dst"]) for route in _ip_json("-4", "route", "show", "table", "all")]
    for block in in_order(run):
        if not is_routed(block, routes) and (claim := _claim(block)):
            return block, claim
    raise SourceError("every address for namespaces is in use here: use --lines proxy")


def _claim(block: Block) -> socket.socket | None:
    """A socket with the block's name, which the kernel leaves one process until its end; None if taken."""
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        claim.bind(f"\0argus-harness-{block.number}")
    except OSError:
        claim.close()
        return None
    return claim


def _end(device: str, here: str, there: str, mac: str) -> Iterator[str]:
    yield f"address add {here} peer {there} dev {device}"
    yield f"link set {device} up"
    yield _neighbour(there, mac, device)


def _neighbour(address: str, mac: str, device: str) -> str:
    return f"neighbour replace {address} lladdr {mac} nud permanent dev {device}"


def _program() -> str:
    return find_program("ip") or "ip"


def _ip_json(*words: str) -> list[dict[str, object]]:
    answer: list[dict[str, object]] = json.loads(_ip("-json", *words) or "[]")
    return answer


def _ip_batch(options: tuple[str, ...], commands: Iterable[str]) -> None:
    _ip(*options, "-batch", "-", given="\n".join(commands) + "\n")


def _ip(*words: str, given: str = "") -> str:
    # Ctrl-C is for the harness, which then takes down what this has built.
    done = subprocess.run(
        [_program(), *words], input=given, capture_output=True, text=True, check=False, start_new_session=True
    )
    if done.returncode:
        raise SourceError(f"`ip {' '.join(words)}` failed: {' '.join(done.stderr.split())}")
    return done.stdout
