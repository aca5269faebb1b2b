"""Short ways to say what a log said, for the tests of evidence and grading."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from argus_sched import due_times
from argus_sched.agent.check import Result
from argus_sched.agent.judging.evidence import Evidence, cover, fold
from argus_sched.agent.judging.grading import grade_job
from argus_sched.agent.judging.job_case import Sight
from argus_sched.agent.logevents import Container, Coverage, Event, EventKind
from argus_sched.agent.packs import JobSpec
from argus_sched.agent.reading.stamps import nanoseconds

NOON = datetime(2026, 3, 14, 12, tzinfo=UTC)
LONG_AGO = NOON - timedelta(days=30)
WEB = Container("web-1", "c1", "web-1", LONG_AGO, running=True)


def ago(**length: float) -> datetime:
    """That long before noon."""
    return NOON - timedelta(**length)


def every(interval: timedelta, grace: timedelta | None = None, **more: Any) -> JobSpec:
    """An interval job called `sync orders`, id `sync`."""
    grace = grace if grace is not None else max(interval, timedelta(minutes=10))
    return JobSpec("sync", "sync orders", due_times.Every(interval), grace, interval, **more)


def cron(expression: str, grace: timedelta, zone: str = "UTC", **more: Any) -> JobSpec:
    """A cron job called `sync orders`, id `sync`."""
    trigger = due_times.cron(expression, zone)
    return JobSpec("sync", "sync orders", trigger, grace, due_times.longest_gap(trigger, NOON), **more)


def event(kind: EventKind, at: datetime, name: str | None = "sync orders", **more: Any) -> Event:
    """One understood line."""
    return Event(kind, nanoseconds(at), name=name, **more)


def run(at: datetime, name: str = "sync orders", fire: datetime | None = None, **more: Any) -> Event:
    """One run line; its due time is the stamp unless given."""
    return event(EventKind.RUNNING, at, name, scheduled_at_utc=fire or at, **more)


def known(events: Iterable[Event], since: datetime | None = LONG_AGO, until: datetime = NOON) -> Evidence:
    """The evidence of one container, its log read from `since` to `until`; not at all when `since` is None."""
    evidence = fold(Evidence(), WEB.key, events)
    if since is None:
        return evidence
    return cover(evidence, WEB, Coverage(nanoseconds(since), nanoseconds(until), reached_end=True), None)


def sight(now: datetime = NOON, **more: Any) -> Sight:
    """What a pass at `now` sees: one running container, everything readable."""
    defaults = {"containers": (WEB,), "watched": frozenset({"sync", "sync orders"})}
    return Sight(now, **{**defaults, **more})


def started(at: datetime, container: Container = WEB) -> Container:
    """The container, started at `at`."""
    return replace(container, started_at=at)


def grade(spec: JobSpec, evidence: Evidence, seen: Sight | None = None) -> Result:
    """The verdict at noon, or at the watermark of `seen`."""
    return grade_job(spec, "labs", evidence, seen or sight())
