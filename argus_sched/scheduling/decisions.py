"""What a round of fires decides: each due time gets one answer on record, it runs, or why it does not.

Pure: from what was seen, and `now`, to what is wanted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from argus_sched.scheduling.catch_up import CatchUp, select
from argus_sched.scheduling.claims import Orphan, Outcome, Want
from argus_sched.scheduling.job import Job

MOST_WANTS = 2000


@dataclass(frozen=True, slots=True)
class Seen:
    """One job that may be due: answered for until `after`, with `running` runs open here."""

    job: Job
    after: datetime
    ripe: datetime
    running: int


@dataclass(frozen=True, slots=True)
class Look:
    """All that a round decides from."""

    now: datetime
    term_start: datetime
    free: int
    jobs: tuple[Seen, ...] = ()
    starts: tuple[tuple[Job, datetime, int], ...] = ()
    orphans: tuple[tuple[Orphan, int], ...] = ()
    start_origin: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """What a round settles: wants to claim, orphans to take over, jobs that need no further look."""

    wants: tuple[Want, ...] = ()
    orphans: tuple[Orphan, ...] = ()
    done: tuple[str, ...] = ()


def decide(look: Look) -> Decision:
    """Answer for everything due, as far as there are free slots; the rest waits for the next round."""
    free = look.free
    orphans = _startable(look.orphans, free)
    free -= len(orphans)
    taken = {orphan.fire.job_id for orphan in orphans}
    wants: list[Want] = []
    done: list[str] = []
    for job, at, running in look.starts:
        if free > 0 and running < job.max_instances:
            room = job.max_instances - running
            wants.append(Want(job.id, at, origin=look.start_origin, room=room, waits=True))
            taken.add(job.id)
            free -= 1
    for seen in look.jobs:
        if free <= 0 or len(wants) >= MOST_WANTS:
            break
        if seen.job.id in taken:
            continue
        mine, whole = wants_of(seen, look.now, look.term_start, free)
        free -= sum(want.outcome is Outcome.RUNNING for want in mine)
        wants += mine
        if whole:
            done.append(seen.job.id)
    return Decision(tuple(wants), tuple(orphans), tuple(done))


def _startable(orphans: Iterable[tuple[Orphan, int]], free: int) -> list[Orphan]:
    """The orphans that find a slot, and room among the runs of their job."""
    chosen: list[Orphan] = []
    started: Counter[str] = Counter()
    for orphan, room in orphans:
        job_id = orphan.fire.job_id
        if len(chosen) < free and started[job_id] < room:
            chosen.append(orphan)
            started[job_id] += 1
    return chosen


def wants_of(seen: Seen, now: datetime, term_start: datetime, free: int) -> tuple[list[Want], bool]:
    """What one job wants on record, and whether that answers for all that is due."""
    job = seen.job
    room = job.max_instances - seen.running
    every_one = job.catch_up is CatchUp.ALL
    if every_one and room <= 0:
        return [], False
    selection = select(
        job.trigger,
        seen.after,
        seen.ripe,
        now=now,
        policy=job.catch_up,
        window=job.catch_up_window,
        term_start=term_start,
        limit=min(room, free),
    )
    if selection.until is None:
        return [], True
    if not selection.run:
        return [_missed(job, selection.until, selection.missed, selection.reason)], not every_one
    if room <= 0:
        return [_skipped(job, selection.until, selection.missed)], True
    wants = [
        Want(
            job.id,
            due,
            missed=0 if rank > 1 else selection.missed,
            reason="" if rank > 1 else selection.reason,
            next_due=job.trigger.next_after(due),
            room=room,
            rank=rank,
            waits=every_one,
        )
        for rank, due in enumerate(selection.run, start=1)
    ]
    return wants, not every_one


def _missed(job: Job, due: datetime, count: int, reason: str) -> Want:
    following = job.trigger.next_after(due)
    return Want(job.id, due, Outcome.MISSED, missed=count - 1, reason=reason, next_due=following)


def _skipped(job: Job, due: datetime, missed: int) -> Want:
    following = job.trigger.next_after(due)
    return Want(job.id, due, Outcome.SKIPPED_OVERLAP, missed=missed, next_due=following)
