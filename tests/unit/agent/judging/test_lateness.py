"""Due times against a last run, checked by walking through them one by one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argus_sched import due_times
from argus_sched.agent.judging.lateness import LINE_DELAY, may_run_within, needed_since, next_due, readings
from argus_sched.agent.packs import JobSpec
from tests.unit.agent.judging.evidence_cases import LONG_AGO, NOON, cron, every

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
SPECS = [
    cron("*/20 * * * *", 10 * MINUTE),
    cron("0 6 * * *", HOUR),
    cron("30 8,17 * * 1-5", 30 * MINUTE),
    cron("0 0 * * 0", 6 * HOUR),
    every(15 * MINUTE, 10 * MINUTE),
    every(timedelta(hours=7), HOUR),
]
moments = st.integers(0, 12 * 86400).map(lambda second: LONG_AGO + timedelta(seconds=second))


def dues(spec: JobSpec, last_run: datetime, until: datetime) -> list[datetime]:
    """What had to follow `last_run`, up to `until`."""
    if isinstance(spec.trigger, due_times.Every):
        return [last_run + spec.interval] if last_run + spec.interval <= until else []
    return due_times.between(spec.trigger, last_run, until, 10_000)


@given(spec=st.sampled_from(SPECS), last_run=moments, later=st.integers(0, 9 * 86400))
def test_a_job_is_stale_exactly_when_some_due_time_and_its_grace_have_passed(
    spec: JobSpec, last_run: datetime, later: int
) -> None:
    now = last_run + timedelta(seconds=later)
    missed = [due for due in dues(spec, last_run, now) if due + spec.grace < now]
    due = next_due(spec, last_run)
    assert due is not None
    assert (due.deadline < now) == bool(missed)
    assert (due.at <= now) == bool(dues(spec, last_run, now))


@given(spec=st.sampled_from(SPECS), now=moments, back=st.integers(0, 20 * 86400))
def test_a_run_satisfies_exactly_from_the_instant_that_is_needed(
    spec: JobSpec, now: datetime, back: int
) -> None:
    ran = now - timedelta(seconds=back)
    due = next_due(spec, ran)
    assert due is not None
    assert (due.deadline >= now) == (ran >= needed_since(spec, now))


@given(run=moments, begin=st.integers(-86400, 6 * 86400), length=st.integers(1, 86400))
def test_an_interval_job_may_run_in_a_hole_only_where_its_phase_falls(
    run: datetime, begin: int, length: int
) -> None:
    spec = SPECS[5]
    start = run + timedelta(seconds=begin)
    end = start + timedelta(seconds=length)
    fires = [run + n * spec.interval for n in range(1, 30)]
    expected = any(start - LINE_DELAY <= fire <= end + LINE_DELAY for fire in fires)
    assert may_run_within(spec, start, end, [run]) == (expected or run > end)


def test_an_interval_job_of_which_nothing_is_known_may_run_at_any_time() -> None:
    assert may_run_within(SPECS[4], NOON, NOON + timedelta(seconds=1), [])


@pytest.mark.parametrize(
    ("begin", "end", "possible"),
    [
        ("05:00", "05:59", False),
        ("05:00", "06:00", True),
        ("06:00", "06:10", True),
        ("06:01", "06:10", True),  # its line may come a moment late
        ("06:02", "06:10", False),
    ],
)
def test_a_cron_job_may_run_only_around_its_due_time(begin: str, end: str, possible: bool) -> None:
    day = datetime(2026, 3, 14, tzinfo=UTC)
    first, last = (day + timedelta(hours=int(text[:2]), minutes=int(text[3:])) for text in (begin, end))
    assert may_run_within(SPECS[1], first, last, ()) is possible


def test_a_wall_clock_time_has_two_readings_on_odd_days_only() -> None:
    trigger = due_times.cron("30 2 * * *", "Europe/Stockholm")
    plain = datetime(2026, 3, 28, 1, 30, tzinfo=UTC)
    assert readings(trigger, plain) == (plain, plain)
    gap = datetime(2026, 3, 29, 1, tzinfo=UTC)
    assert readings(trigger, gap) == (gap - HOUR, gap + HOUR)
    fold = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert readings(trigger, fold) == (fold, fold + HOUR)
    each = due_times.cron("*/30 * * * *", "Europe/Stockholm")
    assert readings(each, fold) == (fold, fold)
