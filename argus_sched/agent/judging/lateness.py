"""When a job must have run: the due time after its last run, and the instant after which it is stale.

An interval job is judged by its age, since nobody outside knows its phase; a cron job against its due times
in its zone. On the two odd days of a year a wall-clock time has two readings (it is shown twice, or never),
and schedulers disagree which one counts, so either of them satisfies.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from argus_sched.agent.packs import JobSpec
from argus_sched.due_times import Cron, Every, Trigger

# How much later than due, or than a known run plus its interval, a run line may be written.
LINE_DELAY = timedelta(minutes=1)
_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True)
class Due:
    """The run that must come next: due at `at`, stale after `deadline`."""

    at: datetime
    deadline: datetime


def next_due(spec: JobSpec, last_run: datetime) -> Due | None:
    """What must follow `last_run`; None when the trigger has no due time any more.

    For a cron job a run before the due time does not satisfy it.
    """
    if not isinstance(spec.trigger, Cron):
        due = (
            last_run + spec.interval if isinstance(spec.trigger, Every) else spec.trigger.next_after(last_run)
        )
        return Due(due, due + spec.grace) if due else None
    due = spec.trigger.next_after(last_run)
    while due is not None and readings(spec.trigger, due)[0] <= last_run:
        due = spec.trigger.next_after(due)
    return Due(due, readings(spec.trigger, due)[1] + spec.grace) if due else None


def needed_since(spec: JobSpec, at: datetime) -> datetime:
    """The oldest instant at which a run would still keep the job from being stale at `at`."""
    if isinstance(spec.trigger, Every):
        return at - spec.limit
    overdue = spec.trigger.latest_at_or_before(at - spec.grace - _INSTANT)
    return readings(spec.trigger, overdue)[0] if overdue else at - spec.limit


def may_run_within(spec: JobSpec, begin: datetime, end: datetime, runs: Iterable[datetime]) -> bool:
    """Whether a fire of the job may lie in [begin, end].

    An interval job counts from any of `runs`: its known runs and the starts of its scheduler; without any, it
    may have run at any time.
    """
    if not isinstance(spec.trigger, Every):
        due = spec.trigger.latest_at_or_before(end)
        return due is not None and readings(spec.trigger, due)[1] + LINE_DELAY >= begin
    phases = [run for run in runs if run <= end]
    return not phases or any(_recurs_within(spec.interval, run, begin, end) for run in phases)


def readings(trigger: Trigger, due: datetime) -> tuple[datetime, datetime]:
    """The earliest and the latest instant that the wall clock of `due` may mean; mostly both are `due`."""
    if not isinstance(trigger, Cron) or trigger.zone.upper() == "UTC":
        return due, due
    zone = ZoneInfo(trigger.zone)
    jump = _offset(zone, due) - _offset(zone, due - _INSTANT)
    if jump > timedelta(0):
        return due - jump, due + jump
    if trigger.fields.wildcard:  # due in each pass of the repeated hour, so each reading is a due time
        return due, due
    return due, max(due, due.astimezone(zone).replace(fold=1).astimezone(UTC))


def _recurs_within(interval: timedelta, run: datetime, begin: datetime, end: datetime) -> bool:
    times = max(1, -((run + LINE_DELAY - begin) // interval))
    return run + times * interval - LINE_DELAY <= end


def _offset(zone: ZoneInfo, instant: datetime) -> timedelta:
    return instant.astimezone(zone).utcoffset() or timedelta(0)
