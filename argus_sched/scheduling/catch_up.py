"""Which due times run after a gap, and which are given up.

The gap is counted from the watermark, the last due time that was answered for, and never from "now", so that
a hand-over loses nothing. Nothing here visits each due time of a gap: ten years of a one-second job cost as
much as one second of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from argus_sched import due_times
from argus_sched.errors import JobError

SHORTEST_WINDOW = timedelta(minutes=10)


class CatchUp(StrEnum):
    """What runs after a gap: the latest due time only, each of them in order, or none."""

    LATEST = "latest"
    ALL = "all"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class Selection:
    """The answer for a gap: what runs (oldest first), how many earlier due times are given up and why.

    `until` is the last due time that is answered for; None when nothing was due.
    """

    run: tuple[datetime, ...] = ()
    missed: int = 0
    reason: str = ""
    until: datetime | None = None


def select(
    trigger: due_times.Trigger,
    after: datetime,
    ripe: datetime,
    *,
    now: datetime,
    policy: CatchUp,
    window: timedelta,
    term_start: datetime,
    limit: int,
) -> Selection:
    """Answer for the due times in (after, ripe].

    Those older than `window` before `now` are given up as `expired`. `latest` gives up all but the last as
    `coalesced`; `skip` gives up those from before `term_start`, when this worker began to fire, as `skipped`,
    and treats what comes later like `latest`; `all` runs the first `limit` of them.
    """
    last = due_times.latest_between(trigger, after, ripe)
    if last is None:
        return Selection()
    start, reason = max(after, now - window), "expired"
    if policy is CatchUp.SKIP and term_start > start:
        start, reason = term_start, "skipped"
    if policy is CatchUp.ALL:
        return _all(trigger, after, start, ripe, last, limit)
    count = trigger.count_between(after, last)
    if last > start:
        return Selection((last,), count - 1, "coalesced" if count > 1 else "", last)
    return Selection((), count, reason, last)


def _all(
    trigger: due_times.Trigger, after: datetime, start: datetime, ripe: datetime, last: datetime, limit: int
) -> Selection:
    if last <= start:
        return Selection((), trigger.count_between(after, last), "expired", last)
    missed = trigger.count_between(after, start)
    run = tuple(due_times.between(trigger, start, ripe, limit))
    return Selection(run, missed, "expired" if missed else "", run[-1] if run else start)


def agreed_catch_up(job_id: str, catch_up: str | None, coalesce: bool | None) -> CatchUp:
    """The rule from both ways to say it; raises JobError when they disagree or the word is unknown."""
    meant = None if coalesce is None else CatchUp.LATEST if coalesce else CatchUp.ALL
    if catch_up is None:
        return meant or CatchUp.LATEST
    try:
        rule = CatchUp(catch_up)
    except ValueError:
        raise JobError(f"job {job_id!r} has catch_up {catch_up!r}: use 'latest', 'all' or 'skip'") from None
    if meant not in (None, rule):
        raise JobError(
            f"job {job_id!r} says coalesce={coalesce} (which means catch_up={meant.value!r}) and "
            f"catch_up={rule.value!r}: drop one of the two"
        )
    return rule


def default_window(trigger: due_times.Trigger, now: datetime) -> timedelta:
    """How far back a gap is caught up unless the job says: one interval, and at least ten minutes."""
    return max(due_times.longest_gap(trigger, now), SHORTEST_WINDOW)
