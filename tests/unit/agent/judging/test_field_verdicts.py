"""What the handed logs must lead to, from raw bytes to the verdict."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from argus_sched.agent.check import Result
from argus_sched.agent.instants import parse_rfc3339
from argus_sched.agent.judging.evidence import Evidence, cover, fold
from argus_sched.agent.judging.grading import grade_strangers
from argus_sched.agent.logevents import Coverage
from argus_sched.agent.packs import JobsCheck, JobSpec
from argus_sched.agent.reading.loglines import parse, split_docker_text
from argus_sched.agent.reading.stamps import nanoseconds
from argus_sched.agent.status import Phase, Status
from tests.unit.agent.judging.evidence_cases import LONG_AGO, WEB, cron, every, grade, sight, started

LOGS = Path(__file__).parents[3] / "field" / "logs"
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def read(*names: str, since: datetime = LONG_AGO, until: datetime) -> Evidence:
    """The evidence of these logs, each from a container of its own."""
    evidence = Evidence()
    for name in names:
        container = name.partition("_")[2].removesuffix(".log")
        evidence = fold(evidence, container, parse(split_docker_text([(LOGS / name).read_bytes()])))
    return cover(evidence, WEB, Coverage(nanoseconds(since), nanoseconds(until), reached_end=True), None)


def called(name: str, spec: JobSpec, job_id: str = "x") -> JobSpec:
    return replace(spec, name=name, id=job_id)


def judged(name: str, spec: JobSpec, now: str, *logs: str, **more: Any) -> Result:
    at = parse_rfc3339(now)
    watched = frozenset({name, spec.id})
    return grade(called(name, spec), read(*logs, until=at), sight(at, watched=watched, **more))


def test_a_busy_log_without_a_line_of_the_scheduler_is_unknown_and_not_stale() -> None:
    result = judged("a job", every(5 * MINUTE, MINUTE), "2026-03-14T21:30:00Z", "15_no_job_lines.log")
    assert (result.status, result.phase) == (Status.UNKNOWN, Phase.BLIND)
    assert "INFO" in result.reason


@pytest.mark.parametrize(
    ("name", "interval", "age", "phase"),
    [("hourly_report", HOUR, 3899.996, Phase.LATE), ("daily_backup", DAY, 86100.0, Phase.FRESH)],
)
def test_a_window_cut_at_both_ends_judges_what_it_holds(
    name: str, interval: timedelta, age: float, phase: Phase
) -> None:
    result = judged(name, every(interval, 10 * MINUTE), "2026-03-14T09:05:00Z", "22_window_26h_cut.log")
    assert (result.status, result.phase, result.age_seconds) == (Status.OK, phase, age)


def test_an_empty_log_is_warming_up_while_the_container_is_young_and_blind_after() -> None:
    now = parse_rfc3339("2026-03-14T10:05:00Z")
    for age, phase in ((MINUTE, Phase.WARMING_UP), (DAY, Phase.BLIND)):
        evidence = read("29_empty.log", since=now - age, until=now)
        seen = sight(now, containers=(started(now - age),))
        assert grade(every(5 * MINUTE, MINUTE), evidence, seen).phase is phase


def test_a_scheduler_that_cannot_submit_is_failing_and_not_unknown() -> None:
    spec = cron("0 */12 * * *", HOUR)
    result = judged("generate_sitemap", spec, "2026-03-15T00:30:00Z", "31_submit_error_zombie.log")
    assert (result.status, result.phase) == (Status.CRIT, Phase.FAILING)
    assert "3 fires could not be submitted" in result.summary


def test_a_broken_job_store_is_failing_and_later_the_reason_of_the_silence() -> None:
    log = "32_jobstore_error_loop.log"
    now = judged("any job", every(MINUTE), "2026-03-14T16:00:31Z", log)
    assert (now.status, now.phase) == (Status.CRIT, Phase.FAILING)
    assert "4 errors" in now.summary
    at = parse_rfc3339("2026-03-14T18:00:00Z")
    evidence = fold(read(log, until=at), WEB.key, parse(split_docker_text([RUN])))
    later = grade(called("any job", every(MINUTE)), evidence, sight(at))
    assert (later.status, later.phase) == (Status.CRIT, Phase.STALE)
    assert "connection already closed" in later.reason


RUN = (
    b'2026-03-14T15:59:00.000000000Z INFO:apscheduler.executors.default:Running job "any job (trigger: '
    b'interval[0:01:00], next run at: 2026-03-14 16:00:00 UTC)" (scheduled at 2026-03-14 15:59:00+00:00)\n'
)


def test_persisted_jobs_that_the_library_deletes_are_critical_named_in_the_pack_or_not() -> None:
    at = parse_rfc3339("2026-03-14T07:05:00Z")
    evidence = read("34_restore_removed.log", until=at)
    watched = sight(at, watched=frozenset({"nightly_report", "Nightly"}))
    named = grade(called("Nightly", every(DAY), "nightly_report"), evidence, watched)
    assert (named.status, named.phase) == (Status.CRIT, Phase.FAILING)
    check = JobsCheck("scheduler_jobs", ())
    unnamed = grade_strangers(check, "labs", evidence, watched)
    assert unnamed is not None
    assert unnamed.status is Status.CRIT
    assert "3f0e6b1c5d" in unnamed.summary
    both = grade_strangers(check, "labs", evidence, sight(at, watched=frozenset()))
    assert both is not None
    assert "(2)" in both.summary


def test_wrapped_run_lines_are_read_or_told_as_unreadable_and_never_stale() -> None:
    name = 'sync "orders" (EU) → dwh'
    result = judged(name, cron("0 18 * * *", 10 * MINUTE), "2026-03-14T18:30:00Z", "11_rich_wrapped.log")
    assert result.phase in {Phase.FRESH, Phase.BLIND}
    if result.phase is Phase.BLIND:
        assert "cannot be read" in result.reason


def test_lines_of_apscheduler_4_make_no_job_stale() -> None:
    result = judged("tick", every(MINUTE, MINUTE), "2026-03-14T19:05:00Z", "12_other_versions.log")
    assert (result.status, result.phase) == (Status.UNKNOWN, Phase.BLIND)


def test_catching_up_after_downtime_is_fresh_and_no_double_fire() -> None:
    spec = every(12 * HOUR, 10 * MINUTE)
    now, log = "2026-03-14T20:00:06Z", "14_burst_catchup.log"
    assert judged("m3 nolimit", spec, now, log).phase is Phase.FRESH
    missed = judged("m", spec, now, log)
    assert missed.last_run is None


def test_two_workers_that_run_the_same_fire_are_found_and_only_for_that_job() -> None:
    logs = ("01_double_fire_web-1.log", "01_double_fire_web-2.log")
    now = "2026-03-14T07:05:00Z"
    doubled = judged("rollup_hourly", cron("0 * * * *", HOUR), now, *logs)
    assert (doubled.status, doubled.phase) == (Status.WARN, Phase.DOUBLE_FIRE)
    assert doubled.details["double_fires"] == ["2026-03-14T06:00:00Z"]
    assert "web-1" in doubled.reason
    assert "web-2" in doubled.reason
    alone = judged("heartbeat_cleanup", every(30 * MINUTE), now, *logs)
    assert alone.phase is Phase.LATE
