"""The four statuses, and which of two is worse."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum, StrEnum


class Status(IntEnum):
    """A verdict; the number is the exit code and the value of `argus_check_status`."""

    OK = 0
    WARN = 1
    CRIT = 2
    UNKNOWN = 3

    @property
    def severity(self) -> int:
        """Rank for sorting: CRIT is worst, then UNKNOWN ("cannot see"), then WARN, then OK."""
        return _SEVERITY[self]


_SEVERITY = {Status.OK: 0, Status.WARN: 1, Status.UNKNOWN: 2, Status.CRIT: 3}


def worst(statuses: Iterable[Status]) -> Status:
    """The most severe of `statuses`; OK when there are none."""
    return max(statuses, key=lambda status: status.severity, default=Status.OK)


class Phase(StrEnum):
    """The finer word behind a status."""

    # jobs
    FRESH = "fresh"
    LATE = "late"
    STALE = "stale"
    WARMING_UP = "warming_up"
    NEVER_RAN = "never_ran"
    FAILING = "failing"
    DOUBLE_FIRE = "double_fire"
    OVERRUNNING = "overrunning"
    BLIND = "blind"
    DISABLED = "disabled"
    # the scheduler's lock
    HELD = "held"
    UNHELD = "unheld"
    CONTENDED = "contended"
    SHARED = "shared"
    BUSY = "busy"
    IN_TRANSACTION = "in_transaction"
    ABORTED = "aborted"
    SILENT_HOLDER = "silent_holder"
    FOREIGN_HOLDER = "foreign_holder"
    STANDBY_HOLDER = "standby_holder"
