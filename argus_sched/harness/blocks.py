"""Names and addresses of a run's network namespaces: a block for each run, which no two runs share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Network

# RFC 2544 keeps this network for tests; each run has a /24 of it.
RESERVED = IPv4Network("198.18.0.0/15")
BLOCKS = tuple(RESERVED.subnets(new_prefix=24))
SLOTS = 253
# A route this wide means everywhere and is no claim to our addresses.
EVERYWHERE = 8
_NAME = re.compile(r"argus-(\d{1,3})-\w+")


@dataclass(frozen=True)
class Block:
    """The addresses of one run: the first for this machine, the next ones for its slots."""

    number: int

    @property
    def network(self) -> IPv4Network:
        """Every address of the run."""
        return BLOCKS[self.number]

    @property
    def host(self) -> str:
        """This machine, as every slot sees it."""
        return str(self.network[1])

    def slot(self, place: int) -> str:
        """The address of the slot that is number `place`, from 0, in the run."""
        return str(self.network[2 + place])

    def name(self, slot: str) -> str:
        """What a slot's namespace and this machine's end of its link are called."""
        return f"argus-{self.number}-{slot}"


def in_order(run: str) -> Iterator[Block]:
    """Every block once, beginning at the one that a run's id (hexadecimal) leads to."""
    first = int(run, 16)
    return (Block((first + step) % len(BLOCKS)) for step in range(len(BLOCKS)))


def block_of(name: str) -> Block | None:
    """The block that a namespace or link belongs to; None when it is none of ours."""
    match = _NAME.fullmatch(name)
    number = int(match[1]) if match else len(BLOCKS)
    return Block(number) if number < len(BLOCKS) else None


def is_routed(block: Block, destinations: Iterable[str]) -> bool:
    """Whether a route of this machine leads to addresses of the block already."""
    networks = (IPv4Network(text, strict=False) for text in destinations if text != "default")
    return any(one.prefixlen >= EVERYWHERE and one.overlaps(block.network) for one in networks)
