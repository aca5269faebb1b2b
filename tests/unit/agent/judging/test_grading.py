"""The verdict on a job, phase by phase: design.md 5.2 as a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argus_sched.agent.check import WAIT_KEY, Node, Result
from argus_sched.agent.instants import parse_rfc3339
from argus_sched.agent.judging.blindness import LINES_NODE
from argus_sched.agent.judging.evidence import Evidence, cover, first_seen
from argus_sched.agent.judging.grading import grade_strangers
from argus_sched.agent.logevents import Container, Coverage, EventKind
from argus_sched.agent.packs import JobsCheck
from argus_sched.agent.reading.stamps import nanoseconds
from argus_sched.agent.status import Phase, Status
from tests.unit.agent.judging.evidence_cases import (
    LONG_AGO,
    NOON,
    WEB,
    ago,
    cron,
    event,
    every,
    grade,
    known,
    run,
    sight,
    started,
)

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
QUARTER = every(15 * MINUTE, 10 * MINUTE)
DAILY = cron("0 6 * * *", HOUR)
SIX = datetime(2026, 3, 14, 6, tzinfo=UTC)
OTHER = run(ago(minutes=1), "another job")


def verdict(result: Result) -> tuple[Status, Phase]:
    return result.status, result.phase


@pytest.mark.parametrize(
    ("age", "status", "phase"),
    [
        (timedelta(0), Status.OK, Phase.FRESH),
        (timedelta(seconds=-3), Status.OK, Phase.FRESH),
        (15 * MINUTE, Status.OK, Phase.FRESH),
        (15 * MINUTE + timedelta(milliseconds=1), Status.OK, Phase.LATE),
        (25 * MINUTE, Status.OK, Phase.LATE),
        (25 * MINUTE + timedelta(milliseconds=1), Status.CRIT, Phase.STALE),
        (20 * DAY, Status.CRIT, Phase.STALE),
    ],
)
def test_an_interval_job_is_judged_by_its_age_with_inclusive_bounds(
    age: timedelta, status: Status, phase: Phase
) -> None:
    result = grade(QUARTER, known([run(NOON - age)]))
    assert verdict(result) == (status, phase)
    assert result.last_run == NOON - age
    assert result.deadline == NOON - age + 25 * MINUTE
    assert result.limit_seconds == 1500


@pytest.mark.parametrize(
    ("ran", "now", "phase"),
    [
        (SIX, SIX, Phase.FRESH),
        (SIX, SIX + 23 * HOUR, Phase.FRESH),
        (SIX, SIX + DAY, Phase.FRESH),
        (SIX, SIX + DAY + MINUTE, Phase.LATE),
        (SIX, SIX + DAY + HOUR, Phase.LATE),
        (SIX, SIX + DAY + HOUR + timedelta(seconds=1), Phase.STALE),
        (SIX, SIX + 2 * DAY + MINUTE, Phase.STALE),  # the next due time does not excuse the one before
        (SIX - timedelta(seconds=1), SIX + HOUR, Phase.LATE),  # a run before the due time is no run for it
        (SIX - timedelta(seconds=1), SIX + 2 * HOUR, Phase.STALE),
        (SIX + 5 * HOUR, SIX + DAY, Phase.FRESH),
    ],
)
def test_a_cron_job_is_judged_against_its_last_due_time(ran: datetime, now: datetime, phase: Phase) -> None:
    evidence = known([run(ran)], until=now)
    assert grade(DAILY, evidence, sight(now)).phase is phase


def test_a_weekday_job_is_fresh_all_weekend_and_its_deadline_is_on_monday() -> None:
    friday = datetime(2026, 3, 13, 7, tzinfo=UTC)
    spec = cron("0 7 * * 1-5", HOUR)
    sunday = friday + 2 * DAY + 10 * HOUR
    result = grade(spec, known([run(friday)], until=sunday), sight(sunday))
    assert result.phase is Phase.FRESH
    assert result.deadline == friday + 3 * DAY + HOUR


@pytest.mark.parametrize(
    ("ran", "phase"),
    [
        ("2026-03-29T00:30:00Z", Phase.FRESH),  # 02:30 by the offset after the gap
        ("2026-03-29T01:00:00Z", Phase.FRESH),  # the first instant after it
        ("2026-03-29T01:30:00Z", Phase.FRESH),  # 02:30 by the offset before it
        ("2026-03-28T01:30:00Z", Phase.STALE),  # the day before
    ],
)
def test_either_reading_of_a_time_in_the_gap_of_spring_satisfies(ran: str, phase: Phase) -> None:
    spec = cron("30 2 * * *", 10 * MINUTE, "Europe/Stockholm")
    now = datetime(2026, 3, 29, 12, tzinfo=UTC)
    assert grade(spec, known([run(parse_rfc3339(ran))], until=now), sight(now)).phase is phase


@pytest.mark.parametrize(
    ("now", "ran", "phase"),
    [
        ("2026-10-25T01:35:00Z", "2026-10-24T00:30:00Z", Phase.LATE),  # the second reading is still to come
        ("2026-10-25T01:45:00Z", "2026-10-24T00:30:00Z", Phase.STALE),
        ("2026-10-25T12:00:00Z", "2026-10-25T00:30:00Z", Phase.FRESH),
        ("2026-10-25T12:00:00Z", "2026-10-25T01:30:00Z", Phase.FRESH),
    ],
)
def test_either_reading_of_a_time_in_the_repeated_hour_satisfies(now: str, ran: str, phase: Phase) -> None:
    spec = cron("30 2 * * *", 10 * MINUTE, "Europe/Stockholm")
    at = parse_rfc3339(now)
    assert grade(spec, known([run(parse_rfc3339(ran))], until=at), sight(at)).phase is phase


@pytest.mark.parametrize(
    ("start", "first_sight", "phase"),
    [
        (ago(minutes=1), None, Phase.WARMING_UP),
        (ago(minutes=25), None, Phase.WARMING_UP),
        (ago(minutes=25, seconds=1), None, Phase.NEVER_RAN),
        (ago(minutes=1), ago(minutes=25), Phase.WARMING_UP),
        (ago(minutes=1), ago(minutes=26), Phase.NEVER_RAN),  # a crash loop does not prolong it
    ],
)
def test_a_job_never_seen_warms_up_once_from_a_start_that_is_known(
    start: datetime, first_sight: datetime | None, phase: Phase
) -> None:
    evidence = known([OTHER])
    if first_sight:
        evidence = first_seen(evidence, ["sync orders"], first_sight)
    result = grade(QUARTER, evidence, sight(containers=(started(start),)))
    assert result.phase is phase
    assert result.status is (Status.OK if phase is Phase.WARMING_UP else Status.CRIT)


def test_a_line_that_says_the_scheduler_started_counts_as_a_start() -> None:
    evidence = known([OTHER, event(EventKind.SCHEDULER_STARTED, ago(minutes=3), None)])
    assert grade(QUARTER, evidence).phase is Phase.WARMING_UP


@pytest.mark.parametrize(
    ("evidence", "reason"),
    [
        (known([OTHER], since=ago(minutes=20)), "begins at"),
        (known([OTHER], since=None), "begins at"),
        (known([]), "no line of the scheduler"),
        (known([event(EventKind.FAILED, ago(days=2), "x")]), "only warnings"),
        (known([OTHER, event(EventKind.UNREADABLE, ago(minutes=2), None)]), "wrapped"),
        (known([OTHER, event(EventKind.UNSUPPORTED, ago(minutes=2), None)]), "APScheduler 4"),
    ],
)
def test_a_job_never_seen_is_blind_where_its_runs_could_not_have_been_seen(
    evidence: Evidence, reason: str
) -> None:
    result = grade(QUARTER, evidence)
    assert verdict(result) == (Status.UNKNOWN, Phase.BLIND)
    assert reason in result.reason


UNREAD = Node("labs", "docker:web/web-2", "docker:web", False, "driver none keeps no log")
HIDING: dict[str, dict[str, Any]] = {
    "driver none": {"unread": UNREAD},
    "in the future": {"future_ns": nanoseconds(NOON + HOUR)},
}


@pytest.mark.parametrize(("reason", "seen"), HIDING.items())
@pytest.mark.parametrize(
    ("events", "phase"),
    [([OTHER], Phase.BLIND), ([run(ago(hours=1))], Phase.BLIND), ([run(ago(minutes=20))], Phase.LATE)],
)
def test_what_hides_lines_blinds_an_absence_but_not_a_run(
    reason: str, seen: dict[str, Any], events: list[Any], phase: Phase
) -> None:
    result = grade(QUARTER, known(events), sight(**seen))
    assert result.phase is phase
    if phase is Phase.BLIND:
        assert reason in result.reason
        assert result.blind_by == (UNREAD.source if "unread" in seen else LINES_NODE)


def test_nothing_readable_makes_every_job_blind_by_the_node_however_fresh() -> None:
    seen = sight(blind=True, unread=UNREAD, containers=())
    result = grade(QUARTER, known([run(ago(minutes=1))]), seen)
    assert verdict(result) == (Status.UNKNOWN, Phase.BLIND)
    assert result.blind_by == UNREAD.source
    assert result.deadline == ago(minutes=1) + QUARTER.limit


def read_twice(ran: datetime, gap_from: datetime, gap_to: datetime, *more: Any) -> Evidence:
    evidence = known([run(ran), *more], until=gap_from)
    later = Container("web-1", "c2", "web-1", gap_to, running=True)
    return cover(evidence, later, Coverage(nanoseconds(gap_to), nanoseconds(NOON), reached_end=True), None)


@pytest.mark.parametrize(
    ("evidence", "phase"),
    [
        # the run of 11:45 may stand in the lines that were lost from 11:38 to 11:48: supposed until 12:13
        (read_twice(ago(minutes=45), ago(minutes=22), ago(minutes=12)), Phase.LATE),
        # lost from 11:18 to 11:22, when an interval counted from 11:15 has no run
        (read_twice(ago(minutes=45), ago(minutes=42), ago(minutes=38)), Phase.STALE),
        # overdue since 10:30 when the container was replaced at 11:45: a deploy is no recovery
        (read_twice(ago(hours=2), ago(minutes=16), ago(minutes=14)), Phase.STALE),
        # nobody looked from 9:30 to the deploy at 11:45: what ran meanwhile went with the container
        (read_twice(ago(hours=2, minutes=35), ago(hours=2, minutes=30), ago(minutes=14)), Phase.LATE),
        # the hole lies so far back that a run in it would not help
        (read_twice(ago(days=3), ago(days=2), ago(days=1)), Phase.STALE),
    ],
)
def test_a_run_is_supposed_in_the_lines_a_replaced_container_took_with_it_until_the_limit_is_over_anew(
    evidence: Evidence, phase: Phase
) -> None:
    assert grade(QUARTER, evidence).phase is phase


@pytest.mark.parametrize(
    ("read_until", "waits"),
    [
        # not overdue when it was last read: what ran since went with the container that was replaced at 11:49:30
        (ago(hours=6), 30),
        # overdue already
        (ago(hours=5, minutes=40), 0),
    ],
)
def test_after_a_deploy_that_nobody_watched_the_message_waits_for_the_run_the_new_scheduler_owes(
    read_until: datetime, waits: float
) -> None:
    born = ago(minutes=10, seconds=30)
    evidence = read_twice(ago(hours=6, minutes=8), read_until, born, OTHER)
    result = grade(every(10 * MINUTE, 2 * MINUTE), evidence, sight(containers=(started(born),)))
    assert verdict(result) == (Status.CRIT, Phase.STALE)
    assert result.details[WAIT_KEY] == waits


def test_a_weekly_job_is_judged_although_its_container_is_recreated_every_day() -> None:
    spec = every(7 * DAY, DAY)
    evidence = known([run(ago(days=9, hours=5))], until=ago(days=8))
    for day in range(8, 0, -1):
        container = Container("web-1", f"c{day}", "web-1", ago(days=day), running=True)
        reach = Coverage(
            nanoseconds(ago(days=day) + MINUTE), nanoseconds(ago(days=day - 1)), reached_end=True
        )
        evidence = cover(evidence, container, reach, None)
    assert grade(spec, evidence).phase is Phase.STALE


@pytest.mark.parametrize(
    ("gap", "phase"),
    [
        ((SIX - HOUR, SIX - MINUTE * 10), Phase.STALE),
        ((SIX - MINUTE, SIX + MINUTE), Phase.BLIND),
        ((SIX + HOUR, SIX + 2 * HOUR), Phase.STALE),
    ],
)
def test_a_hole_blinds_a_cron_job_only_around_its_due_time(
    gap: tuple[datetime, datetime], phase: Phase
) -> None:
    assert grade(DAILY, read_twice(SIX - DAY, *gap)).phase is phase


@pytest.mark.parametrize(
    ("outcomes", "status"),
    [
        ("", Status.OK),
        ("s", Status.OK),
        ("f", Status.WARN),
        ("ff", Status.WARN),
        ("fff", Status.CRIT),
        ("fffs", Status.OK),
        ("fffsf", Status.WARN),
        ("f" * 40, Status.CRIT),
    ],
)
def test_failures_in_a_row_are_a_warning_and_critical_from_three(outcomes: str, status: Status) -> None:
    kinds = {"s": EventKind.SUCCEEDED, "f": EventKind.FAILED}
    begin = NOON - MINUTE * len(outcomes)
    events = [run(ago(seconds=1))]
    for number, outcome in enumerate(outcomes):
        at = begin + number * MINUTE
        events += [run(at), event(kinds[outcome], at + MINUTE / 2)]
    result = grade(QUARTER, known(events))
    assert result.status is status
    assert result.phase is (Phase.FRESH if status is Status.OK else Phase.FAILING)
    assert result.details["failures"] == min(10, len(outcomes) - len(outcomes.rstrip("f")))


def test_a_pool_failure_that_names_only_the_id_counts_as_a_failure() -> None:
    failed = event(EventKind.RUN_ERROR, ago(minutes=1), None, job_id="sync")
    assert grade(QUARTER, known([run(ago(minutes=2)), failed])).phase is Phase.FAILING


@pytest.mark.parametrize(
    ("errors", "ran", "status"),
    [
        (1, None, Status.WARN),
        (3, None, Status.CRIT),
        (3, ago(seconds=30), Status.OK),  # it ran since
        (2, ago(minutes=12), Status.WARN),
    ],
)
def test_submit_errors_since_the_last_run_are_failing(
    errors: int, ran: datetime | None, status: Status
) -> None:
    events = [OTHER, *([run(ran)] if ran else [])]
    events += [event(EventKind.SUBMIT_ERROR, ago(minutes=1 + n), detail="default") for n in range(errors)]
    result = grade(QUARTER, known(events), sight(containers=(started(ago(minutes=9)),)))
    assert result.status is status


def test_a_job_the_store_deleted_is_critical_until_it_is_added_again_or_runs() -> None:
    deleted = event(EventKind.RESTORE_ERROR, ago(minutes=9), None, job_id="sync")
    ran = run(ago(minutes=14))
    gone = grade(QUARTER, known([ran, deleted]))
    assert verdict(gone) == (Status.CRIT, Phase.FAILING)
    assert "deleted" in gone.summary
    assert grade(QUARTER, known([ran, deleted, event(EventKind.ADDED, ago(minutes=8))])).status is Status.OK
    assert grade(QUARTER, known([ran, deleted, run(ago(minutes=8))])).status is Status.OK


def test_a_job_whose_executor_is_gone_is_critical() -> None:
    lost = event(EventKind.EXECUTOR_LOST, ago(minutes=9), detail="nope")
    assert verdict(grade(QUARTER, known([run(ago(minutes=14)), lost]))) == (Status.CRIT, Phase.FAILING)


@pytest.mark.parametrize(
    ("errors", "newest", "status"),
    [(1, 10, Status.WARN), (4, 10, Status.CRIT), (4, 61, Status.OK)],
)
def test_a_job_store_that_cannot_be_read_at_this_moment_makes_its_jobs_failing(
    errors: int, newest: int, status: Status
) -> None:
    lines = [
        event(EventKind.JOBSTORE_ERROR, ago(seconds=newest + 10 * n), None, detail="default: gone")
        for n in range(errors)
    ]
    result = grade(QUARTER, known([run(ago(minutes=12)), *lines]))
    assert result.status is status


@pytest.mark.parametrize(
    ("more", "phase"),
    [
        ([], Phase.OVERRUNNING),
        ([event(EventKind.SUCCEEDED, ago(minutes=1))], Phase.FRESH),
        ([event(EventKind.FAILED, ago(minutes=1))], Phase.FAILING),
        ([event(EventKind.SCHEDULER_STARTED, ago(minutes=1), None)], Phase.FRESH),
        ([run(ago(minutes=2))], Phase.FRESH),
    ],
)
def test_a_run_longer_than_max_run_is_overrunning_unless_something_ended_it(
    more: list[Any], phase: Phase
) -> None:
    spec = replace(QUARTER, max_run=5 * MINUTE)
    ended_once = [run(ago(minutes=30)), event(EventKind.SUCCEEDED, ago(minutes=29))]
    assert grade(spec, known([*ended_once, run(ago(minutes=14)), *more])).phase is phase


def test_a_restart_of_the_container_ends_the_run_that_was_under_way() -> None:
    spec = replace(QUARTER, max_run=5 * MINUTE)
    events = [event(EventKind.SUCCEEDED, ago(minutes=29)), run(ago(minutes=14))]
    seen = sight(containers=(started(ago(minutes=3)),))
    assert grade(spec, known(events), seen).phase is Phase.FRESH


def test_no_run_is_overrunning_where_ends_are_not_logged() -> None:
    spec = replace(QUARTER, max_run=5 * MINUTE)
    assert grade(spec, known([run(ago(minutes=14))])).phase is Phase.FRESH


def test_one_due_time_run_twice_is_a_double_fire_that_is_told_for_an_hour() -> None:
    twice = [run(ago(minutes=50), fire=ago(minutes=50)), run(ago(minutes=49), fire=ago(minutes=50))]
    result = grade(QUARTER, known([*twice, run(ago(minutes=1))]))
    assert verdict(result) == (Status.WARN, Phase.DOUBLE_FIRE)
    assert result.details["double_fires"] == ["2026-03-14T11:10:00Z"]
    later = sight(NOON + 20 * MINUTE)
    evidence = known([*twice, run(NOON + 19 * MINUTE)], until=later.watermark)
    assert grade(QUARTER, evidence, later).phase is Phase.FRESH


def test_catching_up_several_due_times_at_once_is_no_double_fire() -> None:
    events = [run(ago(seconds=1), fire=ago(hours=hours)) for hours in (36, 24, 12)]
    assert grade(every(12 * HOUR), known(events)).phase is Phase.FRESH


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (EventKind.JOB_DISABLED, Status.OK),
        (EventKind.JOB_AUTO_DISABLED, Status.WARN),
        (EventKind.JOB_ENABLED, Status.CRIT),
    ],
)
def test_a_job_that_was_switched_off_is_not_a_dead_job(kind: EventKind, status: Status) -> None:
    off = event(EventKind.JOB_DISABLED, ago(days=2), None, job_id="sync")
    result = grade(QUARTER, known([run(ago(days=3)), off, event(kind, ago(days=1), None, job_id="sync")]))
    assert result.status is status
    assert (result.phase is Phase.DISABLED) == (kind is not EventKind.JOB_ENABLED)


def test_a_job_switched_off_in_the_pack_is_ok_whatever_the_log_says() -> None:
    spec = replace(QUARTER, enabled=False)
    assert verdict(grade(spec, known([]))) == (Status.OK, Phase.DISABLED)
    assert grade(spec, known([]), sight(blind=True)).status is Status.OK


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (event(EventKind.MISSED, ago(minutes=5), missed_by_seconds=90005.00046), "missed by 25h"),
        (event(EventKind.SKIPPED, ago(minutes=5), detail="1"), "1 still running"),
        (event(EventKind.REMOVED, ago(minutes=5), None, job_id="sync"), "removed"),
        (event(EventKind.SCHEDULER_PAUSED, ago(minutes=5), None), "paused"),
        (event(EventKind.SCHEDULER_STOPPED, ago(minutes=5), None), "shut down"),
        (event(EventKind.JOBSTORE_ERROR, ago(minutes=5), None, detail="pg: gone"), "pg: gone"),
        (run(ago(minutes=1), "sync orders v2"), ""),
    ],
)
def test_the_cause_of_a_silence_is_told(line: Any, words: str) -> None:
    result = grade(QUARTER, known([run(ago(hours=2)), line]))
    assert result.phase is Phase.STALE
    assert words in result.reason
    assert bool(words) == bool(result.reason)


def test_a_stranger_with_the_same_trigger_that_appeared_meanwhile_is_a_probable_rename() -> None:
    trigger = "interval[0:15:00]"
    old = run(ago(hours=2), trigger=trigger)
    new = [run(ago(minutes=m), "sync orders v2", trigger=trigger) for m in (40, 25, 10)]
    elder = [run(ago(minutes=m), "bystander", trigger=trigger) for m in (300, 10)]
    assert "renamed: 'sync orders v2'" in grade(QUARTER, known([old, *new, *elder])).reason
    never = grade(QUARTER, known(new))
    assert never.phase is Phase.NEVER_RAN
    assert "renamed: 'sync orders v2'" in never.reason
    assert (
        "renamed"
        not in grade(QUARTER, known([old, *new]), sight(watched=frozenset({"sync orders v2"}))).reason
    )


def test_a_cron_job_is_known_again_under_another_name_by_its_trigger() -> None:
    new = run(SIX, "daily (new)", trigger="cron[hour='6', minute='0']")
    assert "'daily (new)'" in grade(DAILY, known([new])).reason


def test_a_job_is_known_by_its_id_where_the_log_prints_that() -> None:
    assert grade(QUARTER, known([run(ago(minutes=1), "sync")])).phase is Phase.FRESH


def test_a_stopped_container_is_named_as_the_cause() -> None:
    seen = sight(containers=(replace(WEB, running=False),))
    assert "web-1 is not running" in grade(QUARTER, known([run(ago(hours=2))]), seen).reason


def test_of_several_findings_the_worst_is_the_verdict_and_the_others_are_its_reason() -> None:
    twice = [run(ago(minutes=40), fire=ago(minutes=50)), run(ago(minutes=39), fire=ago(minutes=50))]
    failed = event(EventKind.FAILED, ago(minutes=38))
    result = grade(QUARTER, known([*twice, failed]))
    assert verdict(result) == (Status.CRIT, Phase.STALE)
    assert "raised" in result.reason
    assert "ran 2 times" in result.reason


def test_a_deleted_job_that_no_pack_names_is_told_for_a_day() -> None:
    check = JobsCheck("scheduler_jobs", (QUARTER,))
    deleted = event(EventKind.RESTORE_ERROR, ago(hours=2), None, job_id="3f0e6b1c5d")
    result = grade_strangers(check, "labs", known([deleted]), sight())
    assert result is not None
    assert verdict(result) == (Status.CRIT, Phase.FAILING)
    assert result.target == "labs/scheduler_jobs"
    assert "3f0e6b1c5d" in result.summary
    after = grade_strangers(check, "labs", known([deleted]), sight(NOON + DAY))
    assert after is not None
    assert after.status is Status.OK
    assert grade_strangers(check, "labs", known([OTHER]), sight()) is None


STATES = {
    "OK": (Status.OK, {Phase.FRESH}),
    "LATE": (Status.OK, {Phase.LATE}),
    "STALE": (Status.CRIT, {Phase.STALE}),
    "WARMING_UP": (Status.OK, {Phase.WARMING_UP}),
    "NEVER_RAN": (Status.CRIT, {Phase.NEVER_RAN}),
    "UNKNOWN": (Status.UNKNOWN, {Phase.BLIND}),
}


def test_the_handed_cases_have_the_right_answers(field_cases: Callable[[str], Any]) -> None:
    cases = field_cases("grading")["cases"]
    assert len(cases) == 10
    for case in cases:
        assert verdict_of(case) == case["state"], case["id"]


def verdict_of(case: dict[str, Any]) -> str:
    now = parse_rfc3339(case["now"])
    spec = every(timedelta(seconds=case["interval_s"]), timedelta(seconds=case["grace_s"]))
    events = [run(now - MINUTE, "another job")] if case.get("other_jobs_seen") else []
    if case["last_run"]:
        ran = parse_rfc3339(case["last_run"][:26] + "Z")
        fires = [parse_rfc3339(text) for text in case.get("scheduled_at", [])] or [ran]
        events += [run(ran, fire=fire) for fire in fires]
    since = parse_rfc3339(case["coverage_start"]) if "coverage_start" in case else LONG_AGO
    start = parse_rfc3339(case["container_started_at"]) if "container_started_at" in case else LONG_AGO
    seen = sight(now, containers=(started(start),))
    result = grade(spec, known(events, since, now), seen)
    return next(
        state
        for state, (status, phases) in STATES.items()
        if result.status is status and result.phase in phases
    )


RANK = {Phase.FRESH: 0, Phase.LATE: 1, Phase.STALE: 2}


@given(
    spec=st.sampled_from(
        [QUARTER, DAILY, every(DAY, HOUR), cron("*/7 9-17 * * 1-5", 10 * MINUTE, "Asia/Kolkata")]
    ),
    ran=st.integers(0, 40 * 86400),
    steps=st.lists(st.integers(0, 3 * 86400), min_size=1, max_size=6),
)
def test_without_a_new_run_a_job_only_gets_later(spec: Any, ran: int, steps: list[int]) -> None:
    last = LONG_AGO + timedelta(seconds=ran)
    now, before = last, 0
    for step in steps:
        now += timedelta(seconds=step)
        result = grade(spec, known([run(last)], since=LONG_AGO - DAY, until=now), sight(now))
        assert RANK[result.phase] >= before
        assert result.deadline is not None
        assert (now > result.deadline) == (result.phase is Phase.STALE)
        before = RANK[result.phase]
