"""What may be said of a job that is watched and readable: one function for each rule of grading.

A rule yields a finding or nothing, and knows nothing of the other rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from argus_sched.agent.config.durations import format_duration
from argus_sched.agent.instants import about, clock_text
from argus_sched.agent.judging import blindness
from argus_sched.agent.judging.blindness import Blindness
from argus_sched.agent.judging.evidence import MARKS_KEPT, Mark
from argus_sched.agent.judging.job_case import JobCase
from argus_sched.agent.judging.lateness import LINE_DELAY, Due, needed_since
from argus_sched.agent.judging.silence_causes import causes, say
from argus_sched.agent.logevents import EventKind
from argus_sched.agent.reading.stamps import instant
from argus_sched.agent.status import Phase, Status
from argus_sched.due_times import Every

CRITICAL_IN_A_ROW = 3
DOUBLE_TOLD = timedelta(hours=1)
# APScheduler asks a broken job store again every ten seconds.
OUTAGE_SILENCE = timedelta(minutes=1)

DELETIONS = (EventKind.RESTORE_ERROR, EventKind.EXECUTOR_LOST)
_FAILURES = (EventKind.FAILED, EventKind.RUN_ERROR)


@dataclass(frozen=True)
class Finding:
    """What one rule says; a fact at once, though people are told of it from `news_from` on."""

    status: Status
    phase: Phase
    summary: str
    reason: str = ""
    blind_by: str | None = None
    news_from: datetime | None = None


def findings(case: JobCase) -> Iterator[Finding]:
    """Everything the rules find, in the order of grading's table; always at least one."""
    if case.last_run is not None:
        yield from _overdue(case)
    yield from _deleted(case)
    yield from _unsubmitted(case)
    yield from _raising(case)
    yield from _outage(case)
    yield from _overrunning(case)
    yield from _doubled(case)
    yield _never_seen(case) if case.last_run is None else _in_time(case)


def _overdue(case: JobCase) -> Iterator[Finding]:
    if case.due is None or case.age is None or case.now <= case.due.deadline:
        return
    since = needed_since(case.spec, case.now)
    hidden = blindness.obstacle(case, since) or blindness.hole(case, since)
    if hidden:
        yield _blind(f"no run seen for {about(case.age)}, and one may hide", hidden)
        return
    supposed = blindness.deploy(case, since)
    if supposed:
        text = f"no run seen for {about(case.age)}; one may have gone with the log of a replaced container"
        yield Finding(Status.OK, Phase.LATE, f"{text}, tolerated until {clock_text(supposed)}")
        return
    owed = _owed(case, case.due)
    silent = blindness.mute(case, owed)
    if silent:
        yield replace(_blind(f"no run seen for {about(case.age)}", silent), news_from=owed)
        return
    over = about(case.now - case.due.deadline)
    summary = f"last run {about(case.age)} ago, {over} over its limit"
    yield Finding(Status.CRIT, Phase.STALE, summary, causes(case), news_from=owed)


def _owed(case: JobCase, due: Due) -> datetime | None:
    """When an overdue run must have come after all, because the scheduler was started since the last one.

    Many schedulers count an interval from their own start, so that a deploy shortly before a run makes it
    late; that pages nobody. A crash loop gains nothing by it: the first start after the last run counts, and
    one interval is the most. Where runs went with a replaced container, the last of them counts.
    """
    begun = [start for start in case.starts if case.last_run is not None and start > case.last_run]
    if case.last_run is None or not begun or not isinstance(case.spec.trigger, Every):
        return None
    supposed = blindness.supposed_run(case, case.last_run)
    deadline = max(due.deadline, supposed + case.spec.limit) if supposed else due.deadline
    return min(min(begun) + case.spec.interval + LINE_DELAY, deadline + case.spec.interval)


def _deleted(case: JobCase) -> Iterator[Finding]:
    marks = [(mark, kind) for kind in DELETIONS for mark in case.facts.of(kind)[:1]]
    added_ns = max((mark.stamp_ns for mark in case.facts.of(EventKind.ADDED)), default=0)
    if marks:
        mark, kind = max(marks)
        if mark.stamp_ns > max(case.ran_ns, added_ns):
            yield Finding(
                Status.CRIT, Phase.FAILING, "deleted by the scheduler, will not run", say(kind, mark)
            )


def _unsubmitted(case: JobCase) -> Iterator[Finding]:
    errors = [mark for mark in case.facts.of(EventKind.SUBMIT_ERROR) if mark.stamp_ns > case.ran_ns]
    if errors:
        summary = f"{_count(errors, 'fire')} could not be submitted since the last run"
        yield _failing(len(errors), summary, say(EventKind.SUBMIT_ERROR, errors[0]))


def _raising(case: JobCase) -> Iterator[Finding]:
    failed = failures(case)
    if failed:
        summary = f"raised in the last {_count(failed, 'run')}"
        yield _failing(len(failed), summary, f"last at {clock_text(instant(failed[0].stamp_ns))}")


def _outage(case: JobCase) -> Iterator[Finding]:
    marks = case.evidence.scheduler.of(EventKind.JOBSTORE_ERROR)
    errors = [mark for mark in marks if mark.stamp_ns > case.evidence.ran_ns]
    if errors and case.now - instant(errors[0].stamp_ns) <= OUTAGE_SILENCE:
        summary = f"the scheduler cannot read its job store: {_count(errors, 'error')}, no run since"
        yield _failing(len(errors), summary, say(EventKind.JOBSTORE_ERROR, errors[0]))


def _overrunning(case: JobCase) -> Iterator[Finding]:
    since, bound = running_since(case), case.spec.max_run
    if since is not None and bound is not None and case.now - since > bound:
        summary = f"running for {about(case.now - since)}, more than {format_duration(bound)}"
        yield Finding(Status.WARN, Phase.OVERRUNNING, summary, f"began at {clock_text(since)}")


def _doubled(case: JobCase) -> Iterator[Finding]:
    told_since = case.now - max(case.spec.limit, DOUBLE_TOLD)
    for fire, runs in case.facts.doubles.items():
        if instant(runs[0].stamp_ns) >= told_since:
            places = ", ".join(sorted({run.container for run in runs}))
            yield Finding(Status.WARN, Phase.DOUBLE_FIRE, f"due {fire} ran {len(runs)} times", f"in {places}")
            return


def _in_time(case: JobCase) -> Finding:
    ran = f"ran {about(case.age or timedelta(0))} ago"
    if case.due is None or case.now <= case.due.at:
        return Finding(Status.OK, Phase.FRESH, ran)
    late = about(case.now - case.due.at)
    text = f"{ran}, due {late} ago, tolerated until {clock_text(case.due.deadline)}"
    return Finding(Status.OK, Phase.LATE, text, causes(case))


def _never_seen(case: JobCase) -> Finding:
    since = case.now - case.spec.limit
    obstacle = blindness.obstacle(case, since)
    if obstacle:
        return _blind("no run seen yet", obstacle)
    if case.start is not None and min(case.start, case.first_sight) >= since:
        text = f"no run yet; the scheduler started {about(case.now - case.start)} ago"
        return Finding(Status.OK, Phase.WARMING_UP, text)
    short, silent = blindness.hole(case, since), blindness.unheard(case)
    if short:
        return _blind("no run seen yet", short, silent.reason if silent else "")
    if silent:
        return _blind("no run seen yet", silent)
    text = f"no run in {about(case.now - since)}, though the scheduler logs"
    # A job that is new to the packs has its limit before anyone is told.
    known = case.first_sight + case.spec.limit
    return Finding(Status.CRIT, Phase.NEVER_RAN, text, causes(case), news_from=known)


def _blind(summary: str, hidden: Blindness, aside: str = "") -> Finding:
    reason = "; ".join(text for text in (hidden.reason, aside) if text)
    return Finding(Status.UNKNOWN, Phase.BLIND, summary, reason, hidden.blind_by)


def _failing(count: int, summary: str, reason: str) -> Finding:
    status = Status.CRIT if count >= CRITICAL_IN_A_ROW else Status.WARN
    return Finding(status, Phase.FAILING, summary, reason)


def failures(case: JobCase) -> list[Mark]:
    """The failures since the last success, newest first."""
    good_ns = max((mark.stamp_ns for mark in case.facts.of(EventKind.SUCCEEDED)), default=0)
    return [mark for mark in case.facts.of(*_FAILURES) if mark.stamp_ns > good_ns]


def running_since(case: JobCase) -> datetime | None:
    """When the last run began, unless its outcome or a later start of its container says that it ended.

    None as well while no end of any run was ever read: then ends are not logged.
    """
    run = case.facts.last_run
    if run is None or not case.evidence.ended_ns:
        return None
    began = instant(run.stamp_ns)
    endings = case.facts.of(EventKind.SUCCEEDED, *_FAILURES)
    starts = case.evidence.scheduler.of(EventKind.SCHEDULER_STARTED)
    ended = any(
        mark.stamp_ns >= run.stamp_ns and mark.container == run.container for mark in (*endings, *starts)
    )
    restarted = any(
        container.key == run.container and container.started_at is not None and container.started_at > began
        for container in case.sight.containers
    )
    return None if ended or restarted else began


def _count(marks: list[Mark], noun: str) -> str:
    """`1 run`, `3 runs`; marks are kept up to a number, beyond which nobody counts."""
    number = f"{MARKS_KEPT} or more" if len(marks) >= MARKS_KEPT else str(len(marks))
    return f"{number} {noun}{'s' * (len(marks) != 1)}"
