"""Due times against an enumerator of the test's own that walks every minute of a year."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argus_sched.due_times import (
    EPOCH,
    Cron,
    Every,
    between,
    cron,
    daily,
    every,
    jitter,
    latest_between,
    longest_gap,
    monthly,
    once,
    upcoming,
    weekly,
)
from argus_sched.errors import JobError

MINUTE = timedelta(minutes=1)
ZONES = ["Europe/Stockholm", "America/New_York", "Australia/Lord_Howe", "UTC"]
EXPRESSIONS = [
    "0 6 * * *", "17 4 * * *", "30 2 * * *", "30 1 * * *", "0 2,3 * * *", "0,30 2 * * *", "*/15 2 * * *",
    "*/30 * * * *", "15 * * * *", "30 */2 * * *", "0 * * * *", "45 1-3 * * sun", "0 3 * * 0", "0 3 * * 7",
    "0 3 * * 1-5", "5 0 1,15 * mon", "0 0 29 2 *", "59 23 31 12 *", "*/7 1,2 * * *", "0 12 13 * fri",
]  # fmt: skip


@cache
def walked_clock(zone: str):
    """The clock of `zone` walked minute by minute through 2026.

    Returns what it showed, by time of day, as (instant, wall clock, whether it showed that before), and its
    jumps ahead as (instant after, length, wall-clock times skipped).
    """
    tz, start = ZoneInfo(zone), datetime(2025, 12, 31, tzinfo=UTC)
    shown, jumps = defaultdict(list), []
    before = highest = start.astimezone(tz).replace(tzinfo=None) - MINUTE
    for n in range(367 * 24 * 60):
        instant = start + MINUTE * n
        local = instant.astimezone(tz).replace(tzinfo=None)
        if local - before > MINUTE:
            length = local - before - MINUTE
            jumps.append((instant, length, [before + MINUTE * k for k in range(1, length // MINUTE + 1)]))
        shown[local.hour, local.minute].append((instant, local, local <= highest))
        before, highest = local, max(highest, local)
    return shown, jumps


class Fields:
    """A second reading of cron expressions, by hand and only for the forms above."""

    def __init__(self, expression: str) -> None:
        self.minute, self.hour, self.day, self.month, self.weekday = expression.split()
        self.wildcard = self.minute[0] == "*" or self.hour[0] == "*"

    def match(self, local: datetime) -> bool:
        return self.match_day(local) and self.match_time(local.hour, local.minute)

    def match_time(self, hour: int, minute: int) -> bool:
        return self._in(self.hour, hour) and self._in(self.minute, minute)

    def match_day(self, local: datetime) -> bool:
        day, weekday = self._in(self.day, local.day), self._in(self.weekday, local.isoweekday() % 7)
        right_day = (day or weekday) if "*" not in (self.day, self.weekday) else (day and weekday)
        return right_day and self._in(self.month, local.month)

    @staticmethod
    def _in(field: str, value: int) -> bool:
        names = {"sun": 0, "mon": 1, "fri": 5}
        for part in field.split(","):
            span, _, step = part.partition("/")
            if span == "*":
                if value % int(step or 1) == 0:
                    return True
                continue
            low, _, high = span.partition("-")
            first = names.get(low, -1) if low in names else int(low)
            last = int(high) if high else first
            if first <= value <= last or (last == 7 and value == 0):
                return True
        return False


def walk(expression: str, zone: str) -> list[datetime]:
    """The due times of 2026 by looking at every minute the clock showed, and at every minute it skipped."""
    fields, (shown, jumps) = Fields(expression), walked_clock(zone)
    dues = {
        instant
        for instant, length, skipped in jumps
        if any(fields.match(time) and not fields.match(time + length) for time in skipped)
    }
    for (hour, minute), times in shown.items():
        if fields.match_time(hour, minute):
            dues |= {
                instant
                for instant, local, again in times
                if fields.match_day(local) and (fields.wildcard or not again)
            }
    return sorted(due for due in dues if due.astimezone(ZoneInfo(zone)).year == 2026)


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_year_of_cron_equals_the_walked_clock(expression: str, zone: str) -> None:
    tz = ZoneInfo(zone)
    start = datetime(2026, 1, 1, tzinfo=tz).astimezone(UTC)
    end = datetime(2027, 1, 1, tzinfo=tz).astimezone(UTC)
    trigger = cron(expression, zone)
    found = between(trigger, start - timedelta(seconds=1), end - timedelta(seconds=1), limit=10**6)
    assert found == walk(expression, zone)
    assert trigger.count_between(start - MINUTE, end - MINUTE) == len(found)
    for due, later in islice(pairwise(found), 0, None, 97):
        assert trigger.latest_at_or_before(later - timedelta(microseconds=1)) == due
        assert trigger.latest_at_or_before(due) == due


CHANGES = [  # expression, zone, from (UTC), the next due times as the wall clock shows them
    ("30 2 * * *", "Europe/Stockholm", "2026-03-28T12:00", ["2026-03-29T03:00:00+02:00"]),
    ("30 2 * * *", "Europe/Stockholm", "2026-10-24T12:00", ["2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"]),
    ("30 1 * * *", "America/New_York", "2026-10-31T12:00", ["2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"]),
    ("0 * * * *", "America/New_York", "2026-11-01T04:30", ["2026-11-01T01:00:00-04:00", "2026-11-01T01:00:00-05:00"]),
    ("15 * * * *", "Australia/Lord_Howe", "2026-10-03T14:50", ["2026-10-04T02:30:00+11:00", "2026-10-04T03:15:00+11:00"]),
    ("0 12 30 12 *", "Pacific/Apia", "2011-12-01T00:00", ["2011-12-31T00:00:00+14:00"]),
    ("0 0 * * *", "Africa/Cairo", "2026-04-22T23:00", ["2026-04-24T01:00:00+03:00"]),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "zone", "start", "expected"), CHANGES)
def test_an_odd_day_follows_the_written_rule(
    expression: str, zone: str, start: str, expected: list[str]
) -> None:
    after = datetime.fromisoformat(start).replace(tzinfo=UTC)
    dues = islice(upcoming(cron(expression, zone), after), len(expected))
    assert [due.astimezone(ZoneInfo(zone)).isoformat() for due in dues] == expected


def test_the_handed_cron_cases_hold(field_cases) -> None:
    cases = {case["id"]: case for case in field_cases("cron")["cases"]}
    after = datetime(2026, 11, 25, tzinfo=UTC)
    assert cron(cases["dow-0"]["crontab"]).next_after(after) == datetime(2026, 11, 29, 3, tzinfo=UTC)
    assert cron(cases["dow-7"]["crontab"]).next_after(after) == datetime(2026, 11, 29, 3, tzinfo=UTC)
    week = between(cron(cases["dow-1-5"]["crontab"]), after, after + timedelta(days=7), 10)
    assert {due.strftime("%a") for due in week} == {"Mon", "Tue", "Wed", "Thu", "Fri"}
    with pytest.raises(JobError, match="has 6 fields instead of 5"):
        cron(cases["six-fields"]["crontab"])
    assert cron(cases["at-daily"]["crontab"]).next_after(after) == datetime(2026, 11, 26, tzinfo=UTC)
    helsinki = Cron("30 * * * *", cases["helsinki-1021"]["zone"])
    start = datetime(2017, 10, 29, 3, 45, fold=1, tzinfo=ZoneInfo("Europe/Helsinki"))
    local = [due.astimezone(ZoneInfo("Europe/Helsinki")) for due in islice(upcoming(helsinki, start), 3)]
    assert [str(due) for due in local] == cases["helsinki-1021"]["apscheduler_3_11_3"]


def test_ten_missed_years_of_a_one_second_job_are_one_number(field_cases) -> None:
    case = next(case for case in field_cases("cron")["cases"] if case["id"] == "ten-years-forward")
    last, now = datetime.fromisoformat(case["last_fire"]), datetime.fromisoformat(case["now"])
    trigger = every(seconds=case["interval_s"])
    assert trigger.count_between(last, now) - 1 == case["missed"]
    assert latest_between(trigger, last, now) == now


REFUSED = [
    ("* * * *", "has 4 fields instead of 5"),
    ("61 * * * *", "out of range"),
    ("0 0 L * *", "'L' as day of month is not supported"),
    ("0 0 * * 5#2", "'5#2' as day of week is not supported"),
    ("R * * * *", "'R' as minute is not supported"),
    ("0 0 ? * 1", "as day of month is not supported"),
    ("0 0 31 2 *", "names a day that never comes"),
    ("0 0 */2 * 1", "list the days"),
    ("", "has 0 fields"),
    ("a b c d e", "not valid"),
    ("@reboot", "has 1 fields"),
    ("*/0 * * * *", "not valid"),
    ("-1 * * * *", "not valid"),
]


@pytest.mark.parametrize(("expression", "message"), REFUSED)
def test_a_wrong_expression_is_refused_with_its_reason(expression: str, message: str) -> None:
    with pytest.raises(JobError, match=message):
        cron(expression)


def test_an_unknown_zone_is_refused() -> None:
    with pytest.raises(JobError, match="'Europe/Stokholm' is not known"):
        cron("0 6 * * *", "Europe/Stokholm")


def test_an_interval_must_be_positive() -> None:
    with pytest.raises(JobError, match="longer than zero"):
        every(seconds=0)
    with pytest.raises(JobError, match="phase"):
        every(seconds=5, phase=timedelta(seconds=5))


def test_a_one_time_job_needs_a_zone() -> None:
    with pytest.raises(JobError, match="no zone"):
        once(datetime(2026, 3, 14))
    at = datetime(2026, 3, 14, 12, tzinfo=UTC)
    assert once(at).next_after(at) is None
    assert once(at).next_after(at - MINUTE) == once(at).latest_at_or_before(at) == at


def test_the_named_forms_are_cron() -> None:
    assert daily("06:05", "Europe/Stockholm") == Cron("5 6 * * *", "Europe/Stockholm")
    assert weekly("Monday", "23:59") == Cron("59 23 * * mon")
    assert monthly(31, "00:00") == Cron("0 0 31 * *")
    for wrong in (lambda: daily("25:00"), lambda: weekly("someday", "06:00"), lambda: monthly(0, "06:00")):
        with pytest.raises(JobError):
            wrong()


def test_the_longest_gap_of_office_hours_is_the_weekend() -> None:
    friday = datetime(2026, 3, 13, 12, tzinfo=UTC)
    assert longest_gap(cron("0 9 * * 1-5"), friday) == timedelta(days=3)
    assert longest_gap(every(hours=1), friday) == timedelta(hours=1)


instants = st.datetimes(datetime(1971, 1, 1), datetime(2090, 1, 1)).map(
    lambda value: value.replace(tzinfo=UTC)
)
intervals = st.timedeltas(timedelta(milliseconds=1), timedelta(days=400))


@given(instants, intervals, st.floats(0, 0.999))
def test_a_restart_at_any_instant_changes_no_due_time(
    start: datetime, interval: timedelta, share: float
) -> None:
    trigger = Every(interval, min(interval * share, interval - timedelta(microseconds=1)))
    due = trigger.next_after(start)
    assert due is not None
    assert timedelta(0) < due - start <= interval
    assert (due - EPOCH - trigger.phase) % interval == timedelta(0)
    assert trigger.latest_at_or_before(due) == due
    assert trigger.latest_at_or_before(due - timedelta(microseconds=1)) == due - interval


@settings(max_examples=150, deadline=None)
@given(
    instants,
    st.sampled_from(
        ["*/7 * * * *", "0 2 * * *", "30 1,2 * * *", "59 23 * * sun", "0 0 1 * *", "*/30 0-3 * * *"]
    ),
    st.sampled_from(
        [*ZONES, "Europe/Helsinki", "Africa/Casablanca", "America/Havana", "Asia/Tehran", "Africa/Cairo"]
    ),
)
def test_the_next_due_is_always_later_and_found_again_backwards(
    start: datetime, text: str, zone: str
) -> None:
    trigger = cron(text, zone)
    dues = list(islice(upcoming(trigger, start), 4))
    assert all(earlier < later for earlier, later in pairwise([start, *dues]))
    for earlier, later in pairwise(dues):
        assert trigger.latest_at_or_before(later - timedelta(microseconds=1)) == earlier
        assert trigger.next_after(later - timedelta(microseconds=1)) == later
    assert trigger.count_between(start, dues[-1]) == len(dues)


@given(instants, st.text(min_size=1), st.timedeltas(timedelta(0), timedelta(hours=2)))
def test_jitter_is_the_same_everywhere_and_below_its_window(
    due: datetime, key: str, window: timedelta
) -> None:
    delay = jitter(key, due, window)
    assert delay == jitter(key, due, window)
    assert timedelta(0) <= delay < window or delay == window == timedelta(0)


def test_triggers_print_in_the_form_of_the_log_line() -> None:
    assert str(every(minutes=15)) == "interval[0:15:00]"
    assert str(cron("30 2 * * mon")) == "cron[month='*', day='*', day_of_week='mon', hour='2', minute='30']"
    assert str(once(datetime(2026, 3, 14, 10, 0, 15, tzinfo=UTC))) == "date[2026-03-14 10:00:15 UTC]"
