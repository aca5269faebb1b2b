"""Who sits at the scheduler's lock: sessions that hold it or wait for it, on the servers of one pack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from argus_sched.agent.ports import LockRow, LockSample

# The looks at one server, oldest first and at least one.
Looks = Sequence[LockSample]


@dataclass(frozen=True)
class Seat:
    """One session at the lock, and where it sits."""

    row: LockRow
    sample: LockSample

    def __str__(self) -> str:
        name = f" ({self.row.application_name})" if self.row.application_name else ""
        return f"pid {self.row.pid}{name}"

    @property
    def place(self) -> str:
        return f"{self} on {self.sample.server}"


def holders_of(samples: Sequence[LockSample]) -> list[Seat]:
    """The sessions that own the key."""
    return [seat for seat in _seats(samples) if seat.row.granted and seat.row.mode == "ExclusiveLock"]


def shared_holders_of(samples: Sequence[LockSample]) -> list[Seat]:
    """The sessions that hold the key in a mode that excludes nobody."""
    return [seat for seat in _seats(samples) if seat.row.granted and seat.row.mode != "ExclusiveLock"]


def waiters_of(samples: Sequence[LockSample]) -> list[Seat]:
    """The sessions that wait for the key."""
    return [seat for seat in _seats(samples) if not seat.row.granted]


def _seats(samples: Sequence[LockSample]) -> Iterator[Seat]:
    return (Seat(row, sample) for sample in samples for row in sample.rows)


def distinct(servers: Sequence[Looks]) -> list[Looks]:
    """Each database once, although two addresses of the pack may lead to the same one."""
    known: dict[object, Looks] = {}
    for number, looks in enumerate(servers):
        known.setdefault(looks[-1].identity or number, looks)
    return list(known.values())


def all_idle(holders: Sequence[Seat]) -> bool | None:
    """Whether every holder is idle: False without any, None where a state is hidden."""
    states = {seat.row.state for seat in holders}
    if not states:
        return False
    return None if None in states else states == {"idle"}


def looks_busy(pid: int, looks: Looks) -> int:
    """In how many of the newest looks, without a break, session `pid` was at work."""
    count = 0
    for sample in reversed(looks):
        if not any(row.pid == pid and row.granted and row.state != "idle" for row in sample.rows):
            break
        count += 1
    return count
