"""The harness's own list of due times, so that the judge shares no arithmetic with the scheduler it judges.

Slow and obvious on purpose: an interval job is due at every multiple of its interval since the Unix epoch
(plus its phase), a cron job at every minute whose local hands match.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

MINUTE_MS = 60_000


@dataclass(frozen=True)
class Plan:
    """One job of a run. Its rule is `every_ms`, or `minutes` (the cron entry `*/minutes * * * *` in `zone`).

    `at_least_once` tells what becomes of a fire whose worker died; `max_instances` how many may run at once.
    """

    job: str
    name: str
    every_ms: int = 0
    phase_ms: int = 0
    minutes: int = 0
    zone: str = "UTC"
    at_least_once: bool = False
    max_instances: int = 1
    jitter_ms: int = 0
    body_ms: int = 0

    @property
    def period_seconds(self) -> float:
        """The usual distance between two due times."""
        return (self.every_ms or self.minutes * MINUTE_MS) / 1000.0


def due_times(plan: Plan, after_ms: int, until_ms: int) -> Iterator[int]:
    """The due times of a job in (after_ms, until_ms], as milliseconds since the Unix epoch."""
    return _interval(plan, after_ms, until_ms) if plan.every_ms else _cron(plan, after_ms, until_ms)


def _interval(plan: Plan, after_ms: int, until_ms: int) -> Iterator[int]:
    first = (after_ms - plan.phase_ms) // plan.every_ms + 1
    yield from range(first * plan.every_ms + plan.phase_ms, until_ms + 1, plan.every_ms)


def _cron(plan: Plan, after_ms: int, until_ms: int) -> Iterator[int]:
    zone = ZoneInfo(plan.zone)
    for due in range((after_ms // MINUTE_MS + 1) * MINUTE_MS, until_ms + 1, MINUTE_MS):
        local = datetime.fromtimestamp(due / 1000, UTC).astimezone(zone)
        if local.minute % plan.minutes == 0:
            yield due


def jitter_seconds(plan: Plan, due_ms: int) -> float:
    """How much later than its due time a fire of `plan` may start, by the published rule.

    The first 48 bits of SHA-256 of the job's id, 0x1f and the due time in microseconds are its share of the
    window.
    """
    digest = hashlib.sha256(f"{plan.job}\x1f{due_ms * 1000}".encode()).digest()
    return plan.jitter_ms / 1000.0 * int.from_bytes(digest[:6], "big") / 2**48
