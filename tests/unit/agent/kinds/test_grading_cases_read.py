"""The handed cases of grading, each as a log that a daemon holds: read for real, then judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from argus_sched import due_times
from argus_sched.agent.check import Result
from argus_sched.agent.instants import parse_rfc3339, rfc3339
from argus_sched.agent.judging.evidence import Evidence
from argus_sched.agent.kinds.scheduler_jobs import judge_log, look_at_log
from argus_sched.agent.packs import JobsCheck, JobSpec, LogSpec
from argus_sched.agent.sources import open_source
from argus_sched.agent.status import Status
from argus_sched.clock import ManualClock
from tests.fakes.docker_daemon import FakeDocker

SECOND, HALF_HOUR = timedelta(seconds=1), timedelta(minutes=30)
WINDOW = timedelta(hours=26)
STATUSES = {
    "OK": (Status.OK, "fresh"),
    "LATE": (Status.OK, "late"),
    "STALE": (Status.CRIT, "stale"),
    "WARMING_UP": (Status.OK, "warming_up"),
    "NEVER_RAN": (Status.CRIT, "never_ran"),
    "UNKNOWN": (Status.UNKNOWN, "blind"),
}


def run_line(name: str, at: datetime) -> str:
    fire = f"{at:%Y-%m-%d %H:%M:%S}"
    return (
        f'INFO:apscheduler.executors.default:Running job "{name} (trigger: interval[0:05:00], '
        f'next run at: {fire} UTC)" (scheduled at {fire}+00:00)'
    )


def lines(case: dict[str, Any], begins: datetime, now: datetime) -> Iterator[tuple[datetime, str]]:
    """The log of one case, as far as the case tells; it begins with a line that is not the scheduler's."""
    yield begins, "INFO: hello"
    if case.get("other_jobs_seen", True) and case["state"] != "WARMING_UP":
        at = max(begins, now - WINDOW) + SECOND
        while at < now:
            yield at, run_line("another job", at)
            at += HALF_HOUR
    if case["last_run"]:
        ran = parse_rfc3339(case["last_run"])
        yield ran, run_line("the job", ran)


def judged(case: dict[str, Any]) -> Result:
    now = parse_rfc3339(case["now"])
    begins = parse_rfc3339(case.get("coverage_start", rfc3339(now - 2 * WINDOW)))
    created = case.get("container_started_at", rfc3339(begins))
    interval, grace = (timedelta(seconds=case[key]) for key in ("interval_s", "grace_s"))
    check = JobsCheck(
        "scheduler_jobs", (JobSpec("job", "the job", due_times.Every(interval), grace, interval),)
    )
    with FakeDocker() as daemon:
        web = daemon.add("web", created=created, started=created)
        for at, text in sorted(lines(case, begins, now)):
            web.log(text, at)
        clock = ManualClock(now)
        source = open_source(LogSpec(container="web"), clock=clock, timeout=60.0, docker_host=daemon.host)
        try:
            look = look_at_log(source, "labs", (check,), Evidence(), clock, now - WINDOW)
        finally:
            source.close()
    (result,), _ = judge_log(look)
    return result


def test_every_handed_case_is_judged_as_handed_when_its_log_is_read(
    field_cases: Callable[[str], Any],
) -> None:
    found = {case["id"]: judged(case) for case in field_cases("grading")["cases"]}
    expected = {case["id"]: STATUSES[case["state"]] for case in field_cases("grading")["cases"]}
    assert {name: (result.status, result.phase.value) for name, result in found.items()} == expected


@pytest.mark.parametrize(
    ("silence", "state"),
    [
        (timedelta(seconds=119), "NEVER_RAN"),
        (timedelta(seconds=120), "NEVER_RAN"),
        (timedelta(seconds=121), "UNKNOWN"),
        (timedelta(days=13), "UNKNOWN"),
    ],
)
def test_a_silence_before_the_oldest_record_is_believed_only_as_long_as_a_start_takes(
    silence: timedelta, state: str
) -> None:
    now = parse_rfc3339("2026-03-14T10:05:00Z")
    begins = now - HALF_HOUR
    case = {
        "interval_s": 1740,  # the limit is one minute longer than the log
        "grace_s": 120,
        "now": rfc3339(now),
        "last_run": None,
        "coverage_start": rfc3339(begins),
        "container_started_at": rfc3339(begins - silence),
        "state": state,
    }
    result = judged(case)
    assert (result.status, result.phase.value) == STATUSES[state], result
