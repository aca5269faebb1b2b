"""When a job is due: the arithmetic that scheduler, agent and harness share. Stub signatures, filled in next."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

EPOCH = datetime.fromtimestamp(0, __import__("datetime").UTC)


class Trigger(Protocol):
    """A rule that says when a job is due; all instants are aware and in UTC."""

    def next_after(self, instant: datetime) -> datetime | None:
        """The first due time strictly later than `instant`; None when there is none any more."""
        ...

    def latest_at_or_before(self, instant: datetime) -> datetime | None:
        """The last due time not later than `instant`; None when there was none yet."""
        ...
