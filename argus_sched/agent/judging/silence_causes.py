"""Why a job may be silent: what the log says about it since it last ran."""

from __future__ import annotations

from collections.abc import Iterator

from argus_sched import due_times
from argus_sched.agent.discovery.trigger_text import read_trigger
from argus_sched.agent.instants import clock_text
from argus_sched.agent.judging.evidence import Facts, Mark
from argus_sched.agent.judging.job_case import JobCase
from argus_sched.agent.judging.lateness import needed_since
from argus_sched.agent.logevents import EventKind
from argus_sched.agent.reading.stamps import instant

MOST_RENAMES = 2

_OF_JOB = {
    EventKind.MISSED: "a fire was missed by {detail}",
    EventKind.SKIPPED: "a fire was skipped, {detail} still running (max_instances)",
    EventKind.FAILED: "it raised an exception",
    EventKind.RUN_ERROR: "it could not be run",
    EventKind.SUBMIT_ERROR: "the scheduler could not submit it to executor {detail}",
    EventKind.EXECUTOR_LOST: "its executor {detail} is gone, so it was removed from the job store",
    EventKind.RESTORE_ERROR: "the job store could not restore it and deleted it",
    EventKind.REMOVED: "it was removed from the job store",
    EventKind.JOB_ENABLED: "it was enabled again",
}
_OF_SCHEDULER = {
    EventKind.SCHEDULER_PAUSED: "the scheduler was paused",
    EventKind.SCHEDULER_STOPPED: "the scheduler was shut down",
    EventKind.JOBSTORE_ERROR: "the job store could not be read: {detail}",
    EventKind.POOL_BROKEN: "the process pool broke",
}
_SAYINGS = {**_OF_JOB, **_OF_SCHEDULER}
# What the scheduler as a whole says holds until it says that it goes on.
_GOES_ON = (EventKind.SCHEDULER_STARTED, EventKind.SCHEDULER_RESUMED)


def causes(case: JobCase) -> str:
    """What is known of a silence, newest cause first, for a person; empty when the log says nothing."""
    said = sorted({*_of_job(case), *_of_scheduler(case)}, reverse=True)[:2]
    return "; ".join([*(text for _, text in said), *_stopped(case), *_paused(case), *_renames(case)])


def say(kind: EventKind, mark: Mark) -> str:
    """One mark as half a sentence with its time."""
    text = _SAYINGS[kind].format(detail=mark.detail or "?")
    return f"{text} at {clock_text(instant(mark.stamp_ns))}"


def _of_job(case: JobCase) -> Iterator[tuple[int, str]]:
    for kind in _OF_JOB:
        for mark in case.facts.of(kind)[:1]:
            if mark.stamp_ns > case.ran_ns:
                yield mark.stamp_ns, say(kind, mark)


def _of_scheduler(case: JobCase) -> Iterator[tuple[int, str]]:
    scheduler = case.evidence.scheduler
    since = max([case.evidence.ran_ns, *(mark.stamp_ns for mark in scheduler.of(*_GOES_ON))])
    for kind in _OF_SCHEDULER:
        for mark in scheduler.of(kind)[:1]:
            if mark.stamp_ns > since:
                yield mark.stamp_ns, say(kind, mark)


def _stopped(case: JobCase) -> Iterator[str]:
    containers = case.sight.containers
    if containers and not any(container.running for container in containers):
        yield f"{', '.join(container.name for container in containers)} is not running"


def _paused(case: JobCase) -> Iterator[str]:
    run = case.facts.last_run
    if run is not None and run.detail == "paused":
        yield "its last run line says that it was paused"


def _renames(case: JobCase) -> Iterator[str]:
    """Strangers that run with the job's trigger and appeared when it fell silent."""
    recent = needed_since(case.spec, case.now)
    strangers = [
        name
        for name, facts in case.evidence.jobs.items()
        if name not in case.sight.watched
        and (facts.first_ns or 0) > case.ran_ns
        and facts.last_run is not None
        and instant(facts.last_run.stamp_ns) >= recent
        and _same_trigger(case, facts)
    ]
    if strangers:
        names = " or ".join(repr(name) for name in sorted(strangers)[:MOST_RENAMES])
        yield f"probably renamed: {names} runs with the same trigger and is not in the pack"


def _same_trigger(case: JobCase, other: Facts) -> bool:
    own, text = case.facts.trigger[1], other.trigger[1]
    if own:
        return own == text
    trigger = case.spec.trigger
    zone = trigger.zone if isinstance(trigger, due_times.Cron) else "UTC"
    found = read_trigger(text, zone)
    return found is not None and _rule(found.rule) == _rule(trigger)


def _rule(trigger: due_times.Trigger) -> object:
    """What two triggers have in common that fire at the same times, however they are written."""
    if isinstance(trigger, due_times.Cron):
        fields = trigger.fields
        return fields.times, fields.days, fields.months, fields.weekdays
    return trigger.interval if isinstance(trigger, due_times.Every) else trigger
