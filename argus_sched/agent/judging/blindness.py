"""Why an absence cannot be concluded: what may hide a run that nobody saw.

A run that was seen is a fact, whatever else is wrong. That a job did *not* run is known only when every
container's log was read, without a hole, by a clock that agrees, in a form that can be parsed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from argus_sched.agent.instants import about, clock_text
from argus_sched.agent.judging.coverage import Span, holes
from argus_sched.agent.judging.job_case import JobCase
from argus_sched.agent.judging.lateness import may_run_within
from argus_sched.agent.logevents import Container, EventKind
from argus_sched.agent.reading.stamps import instant, nanoseconds

# The node of the target tree that stands for the scheduler's own lines in a log that can be read.
LINES_NODE = "scheduler-lines"
# For how long a run that may have gone with a replaced container is taken for one that happened.
LONGEST_DOUBT = timedelta(hours=2)

UNREADABLE = {
    EventKind.UNREADABLE: "`Running job` text was seen that cannot be read: is it wrapped? set COLUMNS=1000, "
    "or log through a plain handler",
    EventKind.UNSUPPORTED: "the lines are of APScheduler 4, which prints no run lines with names",
}


@dataclass(frozen=True)
class Blindness:
    """What hides the job, and the node of the target tree whose failure that is, where it is one's."""

    reason: str
    blind_by: str | None = None


def obstacle(case: JobCase, since: datetime) -> Blindness | None:
    """What keeps the log from being believed at all, from `since` on; None when nothing does."""
    sight = case.sight
    if sight.unread is not None:
        return Blindness(sight.unread.problem, sight.unread.source)
    if sight.future_ns is not None:
        ahead = about(instant(sight.future_ns) - case.now)
        reason = f"lines are stamped {ahead} in the future: compare the clocks of the hosts"
        return Blindness(reason, LINES_NODE)
    for kind, reason in UNREADABLE.items():
        if any(mark.stamp_ns >= nanoseconds(since) for mark in case.evidence.scheduler.of(kind)):
            return Blindness(reason, LINES_NODE)
    return None


def hole(case: JobCase, since: datetime) -> Blindness | None:
    """The first stretch after `since` that no read covered where a run may hide, less those of `deploy`."""
    for container, span in _hiding(case, since):
        if not _is_deploy(case, container, span):
            return Blindness(_tell(span, nanoseconds(since), container.name))
    return None


def deploy(case: JobCase, since: datetime) -> datetime | None:
    """Until when a run is supposed that only the last lines of a replaced container can have shown.

    A container takes its log with it, and with it what was written since the last pass: every deploy does
    that, and is no reason to wake anyone before the job had its limit anew.
    """
    births = [instant(span.to_ns) for found, span in _hiding(case, since) if _is_deploy(case, found, span)]
    return max(births) + _doubt(case) if births else None


def supposed_run(case: JobCase, since: datetime) -> datetime | None:
    """The latest instant after `since` of a run that a replaced container may have taken with it, however
    long ago that is; None when none may have."""
    births = [instant(span.to_ns) for found, span in _hiding(case, since) if _is_birth(case, found, span)]
    return max(births, default=None)


def mute(case: JobCase, owed: datetime | None) -> Blindness | None:
    """The blindness of a scheduler that said nothing since every one of its containers started.

    Before `owed` it may only not have got that far, which is nobody's failure yet.
    """
    running = [container.started_at for container in case.sight.containers if container.running]
    starts = [start for start in running if start is not None]
    if not starts or len(starts) < len(running) or nanoseconds(min(starts)) <= case.evidence.heard_ns:
        return None
    return Blindness(
        f"no line of the scheduler was read since the start at {clock_text(max(starts))}: was it started, "
        "and is the logger `apscheduler` at INFO?",
        LINES_NODE if owed is None or case.now >= owed else None,
    )


def unheard(case: JobCase) -> Blindness | None:
    """The blindness of a log in which the scheduler says nothing that would show its run lines."""
    if case.evidence.heard_ns:
        return None
    if case.evidence.jobs or case.evidence.scheduler.marks:
        return Blindness(
            "only warnings and errors of the scheduler were read: set the logger `apscheduler` to INFO",
            LINES_NODE,
        )
    return Blindness(
        "no line of the scheduler was read: is the logger `apscheduler` at INFO, and is this its log?",
        LINES_NODE,
    )


def _hiding(case: JobCase, since: datetime) -> Iterator[tuple[Container, Span]]:
    """The stretches after `since` that no read covered and in which a run may hide, by container."""
    for container in case.sight.containers:
        track = case.evidence.containers.get(container.key)
        for span in holes(track.spans if track else (), nanoseconds(since), case.now_ns):
            if _may_hide(case, span) and not _came_too_late(case, container, span):
                yield container, span


def _came_too_late(case: JobCase, container: Container, span: Span) -> bool:
    """Whether the job was seen overdue before its container was replaced: a deploy is no recovery.

    What counts is the last read before, however long ago: `span` begins no earlier than the job was needed.
    """
    if case.due is None or not _is_birth(case, container, span):
        return False
    read = case.evidence.containers[container.key].spans
    seen_ns = max((before.to_ns for before in read if before.from_ns < span.to_ns), default=0)
    return instant(seen_ns) > case.due.deadline


def _is_deploy(case: JobCase, container: Container, span: Span) -> bool:
    """Whether `span` ends where a recreated container begins, not longer ago than the doubt lasts."""
    return _is_birth(case, container, span) and case.now <= instant(span.to_ns) + _doubt(case)


def _is_birth(case: JobCase, container: Container, span: Span) -> bool:
    track = case.evidence.containers.get(container.key)
    return track is not None and span.to_ns in track.births


def _doubt(case: JobCase) -> timedelta:
    return min(case.spec.limit, LONGEST_DOUBT)


def _may_hide(case: JobCase, span: Span) -> bool:
    return may_run_within(case.spec, instant(span.from_ns), instant(span.to_ns), _phases(case))


def _phases(case: JobCase) -> list[datetime]:
    """From what instants an interval may be counted: known runs, and starts since; none without a run."""
    if case.last_run is None:
        return []
    runs = [instant(mark.stamp_ns) for mark in case.facts.of(EventKind.RUNNING)]
    return [*runs, *(start for start in case.starts if start > case.last_run)]


def _tell(span: Span, since_ns: int, container: str) -> str:
    begin, end = instant(span.from_ns), instant(span.to_ns)
    if span.from_ns <= since_ns:
        return (
            f"the evidence of {container} begins at {clock_text(end)}, {about(end - begin)} too late to tell"
        )
    return (
        f"the log of {container} was not read from {clock_text(begin)} to {clock_text(end)} "
        f"({about(max(end - begin, timedelta(seconds=1)))}), where a run may hide"
    )
