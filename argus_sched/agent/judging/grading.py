"""How a job is judged: from the evidence and the instant of the last complete read to one verdict.

First what needs no judgement, in this order:

1. switched off in the pack                                          disabled, OK
2. nothing of the log could be read                                  blind, UNKNOWN
3. switched off by a line of the scheduler, by a person / by itself  disabled, OK / WARN

Otherwise each rule below may find something. The worst status wins (CRIT, UNKNOWN, WARN, OK); of two equal
ones the rule that stands first. What the other rules found is told as the reason.

| rule         | finds                                                                                 |
|--------------|---------------------------------------------------------------------------------------|
| overdue      | stale (CRIT) after the deadline; blind where a run may hide from what was read        |
| deleted      | failing (CRIT): the scheduler deleted the job and it did not run or come back since   |
| unsubmitted  | failing (WARN, CRIT from three): fires the scheduler could not submit since the last run |
| raising      | failing (WARN, CRIT from three): the last finished runs raised                        |
| outage       | failing (WARN, CRIT from three): the job store cannot be read at this moment          |
| overrunning  | WARN: the last run began more than `max_run` ago and is not known to have ended       |
| doubled      | double_fire (WARN): one due time run twice, until the limit, at least an hour, is over |
| the rest     | a job that ran: fresh (due time not reached), late (deadline not passed)              |
|              | one never seen: blind, warming_up, never_ran (CRIT), by design.md 5.2                 |

Bounds are inclusive: at the deadline a job is late, an instant after it stale.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from argus_sched.agent.check import WAIT_KEY, Result
from argus_sched.agent.config.durations import format_duration
from argus_sched.agent.instants import clock_text, rfc3339
from argus_sched.agent.judging.evidence import Evidence
from argus_sched.agent.judging.job_case import JobCase, Sight
from argus_sched.agent.judging.job_findings import DELETIONS, Finding, failures, findings, running_since
from argus_sched.agent.logevents import EventKind
from argus_sched.agent.packs import JobsCheck, JobSpec
from argus_sched.agent.reading.stamps import instant
from argus_sched.agent.status import Phase, Status

DELETION_TOLD = timedelta(days=1)
NAMES_TOLD = 3

_SWITCHES = (EventKind.JOB_DISABLED, EventKind.JOB_AUTO_DISABLED, EventKind.JOB_ENABLED)


def grade_job(spec: JobSpec, app: str, evidence: Evidence, sight: Sight) -> Result:
    """The verdict on one job at `sight.watermark`; rules and their order: the top of this module.

    `deadline` is the instant after which the job is stale unless it runs; None where none is known.
    `details` holds what was judged: `watermark`, `covered_from`, `running_since`, `failures`, `double_fires`,
    and under WAIT_KEY how long the message still waits.
    """
    case = JobCase(spec, evidence, sight)
    settled = _settled(case)
    found = [settled] if settled else list(findings(case))
    worst = max(found, key=lambda finding: finding.status.severity)
    others = [other.summary for other in found if other is not worst and other.status is not Status.OK]
    return Result(
        app=app,
        check=JobsCheck.kind,
        target=f"{app}/{spec.id}",
        status=worst.status,
        phase=worst.phase,
        summary=worst.summary,
        reason="; ".join(text for text in (worst.reason, *others) if text),
        name=spec.name,
        last_run=case.last_run,
        age_seconds=case.age.total_seconds() if case.age is not None else None,
        limit_seconds=spec.limit.total_seconds(),
        deadline=_deadline(case, worst.phase),
        blind_by=worst.blind_by,
        details=_details(case) | {WAIT_KEY: _wait_seconds(case, worst)},
    )


def grade_strangers(check: JobsCheck, app: str, evidence: Evidence, sight: Sight) -> Result | None:
    """A verdict on jobs that no pack names and that the scheduler deleted; None when it deleted none.

    Its target is the check itself, since a line that deletes carries an id and the pack may know only names.
    """
    cases = [
        (marks[0], key)
        for key, facts in evidence.jobs.items()
        if key not in sight.watched and (marks := facts.of(*DELETIONS))
    ]
    if not cases or sight.blind:
        return None
    newest = instant(max(cases)[0].stamp_ns)
    recent = sight.watermark - newest <= DELETION_TOLD
    names = ", ".join(key for _, key in sorted(cases, reverse=True)[:NAMES_TOLD])
    return Result(
        app=app,
        check=check.kind,
        target=f"{app}/{check.id}",
        status=Status.CRIT if recent else Status.OK,
        phase=Phase.FAILING if recent else Phase.FRESH,
        summary=f"the scheduler deleted jobs that no pack names ({len(cases)}): {names}",
        reason=f"the last at {clock_text(newest)}; told for {format_duration(DELETION_TOLD)}",
    )


def _settled(case: JobCase) -> Finding | None:
    if not case.spec.enabled:
        return Finding(Status.OK, Phase.DISABLED, "switched off in the pack")
    if case.sight.blind:
        node = case.sight.unread
        return Finding(
            Status.UNKNOWN,
            Phase.BLIND,
            "the log cannot be read",
            node.problem if node else "",
            node.source if node else None,
        )
    return _switched_off(case)


def _switched_off(case: JobCase) -> Finding | None:
    switches = [(mark, kind) for kind in _SWITCHES for mark in case.facts.of(kind)[:1]]
    if not switches:
        return None
    mark, kind = max(switches)
    since = clock_text(instant(mark.stamp_ns))
    if kind is EventKind.JOB_AUTO_DISABLED:
        text = f"switched off by the scheduler itself at {since}"
        return Finding(Status.WARN, Phase.DISABLED, text, mark.detail)
    if kind is EventKind.JOB_DISABLED:
        return Finding(Status.OK, Phase.DISABLED, f"switched off by a person at {since}", mark.detail)
    return None


def _deadline(case: JobCase, phase: Phase) -> datetime | None:
    if phase is Phase.DISABLED:
        return None
    if case.last_run is not None:
        return case.due.deadline if case.due else None
    if phase in {Phase.WARMING_UP, Phase.NEVER_RAN}:
        begin = min(filter(None, (case.start, case.first_sight)))
        return min(begin + case.spec.limit, case.now) if phase is Phase.NEVER_RAN else begin + case.spec.limit
    return None


def _wait_seconds(case: JobCase, finding: Finding) -> float:
    return max((finding.news_from - case.now).total_seconds(), 0.0) if finding.news_from else 0.0


def _details(case: JobCase) -> dict[str, Any]:
    spans = [track.spans[-1].from_ns for track in case.evidence.containers.values() if track.spans]
    since = running_since(case)
    return {
        "watermark": rfc3339(case.now),
        "covered_from": rfc3339(instant(max(spans))) if spans else None,
        "running_since": rfc3339(since) if since else None,
        "failures": len(failures(case)),
        "double_fires": list(case.facts.doubles),
    }
