"""The fixed texts of APScheduler 3 and of our own scheduler, and the fields that stand in them.

Read in APScheduler 3.11.3 (executors/base.py, schedulers/base.py, jobstores/*.py, job.py). Nothing in a name
or a trigger is escaped there, so every text is taken apart from its right end, where the form is fixed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from argus_sched.agent.logevents import EventKind
from argus_sched.agent.reading import stamps

APSCHEDULER: Final = "apscheduler"
OURS: Final = "argus_sched"


@dataclass(frozen=True, slots=True)
class Message:
    """One understood text: its kind, the fields of an Event, the logger family that may say it, and whether
    it is so plain that only that logger's name makes it certain."""

    kind: EventKind
    fields: Mapping[str, Any]
    family: str = APSCHEDULER
    needs_logger: bool = False


class Unfinished:
    """A text that began as one of the quoted forms and has not reached its end: a name may hold line ends."""


UNFINISHED: Final = Unfinished()
Outcome = Message | Unfinished | None

_DURATION = re.compile(r"(?:(-?\d{1,9}) days?, )?(\d{1,2}):(\d\d):(\d\d)(?:\.(\d{6}))?")
_SKIPPED = re.compile(r"\" skipped: maximum number of running instances reached \((\d{1,9})\)\Z")
_SWITCHED = re.compile(
    r"\" \(id=(\S{1,200})\) "
    r"(?:(disabled|paused|enabled) by (.+)|auto-disabled after (\d{1,9} failures in a row: .*))\Z",
    re.DOTALL,
)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12} completed successfully")


def understand(message: str) -> Outcome:
    """What `message` says, from its first character to its last; None when it is none of the known texts."""
    opening = OPENING.match(message)
    if opening is None:
        return None
    return _READERS[opening[0]](message[opening.end() :])


def _running(rest: str) -> Outcome:
    job_text, mark, time = rest.rpartition('" (scheduled at ')
    if not mark or not time.endswith(")"):
        return UNFINISHED
    time = time[:-1]
    job = _job(job_text)
    if job is None:
        return None
    if stamps.is_naive_time(time):
        return Message(
            EventKind.UNSUPPORTED, {"detail": "APScheduler 2: times without an offset", "name": job["name"]}
        )
    instant = stamps.offset_time_utc(time)
    if instant is None:
        return None
    return Message(EventKind.RUNNING, job | {"scheduled_at": time, "scheduled_at_utc": instant})


def _outcome(rest: str) -> Outcome:
    for ending, kind in _OUTCOMES:
        if rest.endswith(ending):
            job = _job(rest[: -len(ending)])
            return None if job is None else Message(kind, job)
    return _switched(rest) or UNFINISHED


def _switched(rest: str) -> Message | None:
    """Our own fixed lines; the last `" (id=` that an id and a known verb follow ends the name."""
    end = len(rest)
    while (start := rest.rfind('" (id=', 0, end)) >= 0:
        match = _SWITCHED.match(rest, start)
        if match:
            kind = _SWITCHES[match[2] or "auto-disabled"]
            fields = {"name": rest[:start], "job_id": match[1], "detail": match[3] or match[4]}
            return Message(kind, fields, family=OURS)
        end = start
    return None


def _missed(rest: str) -> Outcome:
    job_text, mark, duration = rest.rpartition('" was missed by ')
    if not mark:
        return UNFINISHED
    job, seconds = _job(job_text), _seconds(duration)
    if job is None or seconds is None:
        return None
    return Message(EventKind.MISSED, job | {"missed_by_seconds": seconds})


def _skipped(rest: str) -> Outcome:
    match = _SKIPPED.search(rest, max(len(rest) - 100, 0))
    if match is None:
        return UNFINISHED
    return _with_job(EventKind.SKIPPED, rest[: match.start()], match[1])


def _submit_error(rest: str) -> Outcome:
    job_text, mark, alias = rest.rpartition('" to executor "')
    if not mark or not alias.endswith('"'):
        return UNFINISHED
    return _with_job(EventKind.SUBMIT_ERROR, job_text, alias[:-1])


def _executor_lost(rest: str) -> Outcome:
    alias, mark, job_text = rest.partition('") failed for job "')
    ending = '" -- removing it from the job store'
    if not mark or not job_text.endswith(ending):
        return UNFINISHED
    return _with_job(EventKind.EXECUTOR_LOST, job_text[: -len(ending)], alias)


def _added(rest: str) -> Outcome:
    name, mark, alias = rest.rpartition('" to job store "')
    if not mark or not alias.endswith('"'):
        return UNFINISHED
    return Message(EventKind.ADDED, {"name": name, "detail": alias[:-1]})


def _restore_error(rest: str) -> Outcome:
    job_id, mark, _ = rest.partition('" -- removing it')
    if not mark or not rest.endswith('" -- removing it'):
        return None
    return Message(EventKind.RESTORE_ERROR, {"job_id": job_id})


def _jobstore_error(rest: str) -> Outcome:
    alias, mark, cause = rest.partition("': ")
    return Message(EventKind.JOBSTORE_ERROR, {"detail": f"{alias}: {cause}"}) if mark else None


def _by_id(kind: EventKind) -> Callable[[str], Outcome]:
    def read(rest: str) -> Outcome:
        if not rest or '"' in rest or "\n" in rest:
            return None
        return Message(kind, {"job_id": rest}, needs_logger=" " in rest)

    return read


def _fixed(kind: EventKind, ending: str = "") -> Callable[[str], Outcome]:
    return lambda rest: Message(kind, {}) if rest == ending else None


def _free(kind: EventKind) -> Callable[[str], Outcome]:
    return lambda _: Message(kind, {}, needs_logger=True)


def _apscheduler_4(rest: str) -> Outcome:
    return Message(EventKind.UNSUPPORTED, {"detail": "APScheduler 4"}) if _UUID.fullmatch(rest) else None


def _with_job(kind: EventKind, job_text: str, detail: str) -> Message | None:
    job = _job(job_text)
    return None if job is None else Message(kind, job | {"detail": detail})


def _job(text: str) -> dict[str, Any] | None:
    """`str(Job)`: NAME (trigger: TRIGGER, next run at: TIME | paused | pending)."""
    if not text.endswith(")"):
        return None
    name, mark, rest = text[:-1].rpartition(" (trigger: ")
    if not mark:
        return None
    trigger, mark, time = rest.rpartition(", next run at: ")
    if mark and stamps.is_zoned_time(time):
        utc = stamps.zoned_time_utc(time)
        return {
            "name": name,
            "trigger": trigger,
            "status": "scheduled",
            "next_run": time,
            "next_run_utc": utc,
        }
    trigger, mark, status = rest.rpartition(", ")
    if mark and status in ("paused", "pending"):
        return {"name": name, "trigger": trigger, "status": status}
    return None


def _seconds(text: str) -> float | None:
    match = _DURATION.fullmatch(text)
    if match is None:
        return None
    days, hours, minutes, seconds, fraction = (int(group or 0) for group in match.groups())
    return timedelta(days, seconds, fraction, minutes=minutes, hours=hours).total_seconds()


_OUTCOMES = (
    ('" executed successfully', EventKind.SUCCEEDED),
    ('" raised an exception', EventKind.FAILED),
)
_SWITCHES = {
    "disabled": EventKind.JOB_DISABLED,
    "paused": EventKind.JOB_DISABLED,
    "auto-disabled": EventKind.JOB_AUTO_DISABLED,
    "enabled": EventKind.JOB_ENABLED,
}
_READERS: dict[str, Callable[[str], Outcome]] = {
    'Running job "': _running,
    'Job "': _outcome,
    "Job ": _apscheduler_4,
    'Run time of job "': _missed,
    'Execution of job "': _skipped,
    'Error submitting job "': _submit_error,
    'Executor lookup ("': _executor_lost,
    'Added job "': _added,
    'Unable to restore job "': _restore_error,
    "Error getting due jobs from job store '": _jobstore_error,
    "Error running job ": _by_id(EventKind.RUN_ERROR),
    "Removed job ": _by_id(EventKind.REMOVED),
    "Adding job tentatively": _fixed(
        EventKind.TENTATIVE, " -- it will be properly scheduled when the scheduler starts"
    ),
    "Scheduler started": _fixed(EventKind.SCHEDULER_STARTED),
    "Scheduler has been shut down": _fixed(EventKind.SCHEDULER_STOPPED),
    "Paused scheduler job processing": _fixed(EventKind.SCHEDULER_PAUSED),
    "Resumed scheduler job processing": _fixed(EventKind.SCHEDULER_RESUMED),
    "Process pool is broken": _fixed(EventKind.POOL_BROKEN, "; replacing pool with a fresh instance"),
    "Error notifying listener": _fixed(EventKind.LISTENER_ERROR),
    "Looking for jobs to run": _fixed(EventKind.DEBUG),
    "Next wakeup is due at ": _free(EventKind.DEBUG),
    "No jobs; waiting until a job is added": _fixed(EventKind.DEBUG),
    "Scheduler is paused": _free(EventKind.DEBUG),
}
# Longer openings first, so that `Job "` is not read as `Job `.
OPENING = re.compile("|".join(sorted(map(re.escape, _READERS), key=len, reverse=True)))
