"""After a gap: which due times run, which are given up, and why."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argus_sched.due_times import Cron, Every, Trigger, between, cron, every
from argus_sched.scheduling.catch_up import CatchUp, Selection, select

T = datetime(2026, 3, 14, 10, tzinfo=UTC)
WINDOW = timedelta(minutes=10)


def at(minutes: float) -> datetime:
    return T + timedelta(minutes=minutes)


def answer(policy: str, after: float, now: float, **options: Any) -> Selection:
    settings: dict[str, Any] = {
        "now": options.pop("clock", at(now)),
        "policy": CatchUp(policy),
        "window": WINDOW,
        "term_start": at(-1000),
        "limit": 100,
    }
    settings.update(options)
    return select(every(minutes=1), at(after), at(now), **settings)


def runs(*minutes: float) -> tuple[datetime, ...]:
    return tuple(at(minute) for minute in minutes)


@pytest.mark.parametrize(
    ("policy", "after", "now", "options", "expected"),
    [
        # nothing is due
        ("latest", 0, 0.5, {}, Selection()),
        ("all", 0, 0.5, {}, Selection()),
        # on time
        ("latest", 0, 1, {}, Selection(runs(1), until=at(1))),
        ("all", 0, 1, {}, Selection(runs(1), until=at(1))),
        ("skip", 0, 1, {}, Selection(runs(1), until=at(1))),
        # a gap of five minutes
        ("latest", 0, 5.5, {}, Selection(runs(5), 4, "coalesced", at(5))),
        ("all", 0, 5.5, {}, Selection(runs(1, 2, 3, 4, 5), until=at(5))),
        ("skip", 0, 5.5, {"term_start": at(5.2)}, Selection((), 5, "skipped", at(5))),
        ("skip", 0, 5.5, {"term_start": at(4.2)}, Selection(runs(5), 4, "coalesced", at(5))),
        # fewer slots than due times: the rest waits
        ("all", 0, 5.5, {"limit": 2}, Selection(runs(1, 2), until=at(2))),
        # a gap longer than the window
        ("latest", 0, 60.5, {}, Selection(runs(60), 59, "coalesced", at(60))),
        ("all", 0, 60.5, {}, Selection(runs(*range(51, 61)), 50, "expired", at(60))),
        ("all", 0, 60.5, {"limit": 1}, Selection(runs(51), 50, "expired", at(51))),
        # the window's edge is a due time: it is too old by nothing, and given up
        ("all", 0, 20, {}, Selection(runs(*range(11, 21)), 10, "expired", at(20))),
        # everything due is older than the window
        ("latest", 0, 1, {"clock": at(30)}, Selection((), 1, "expired", at(1))),
        ("all", 0, 2, {"clock": at(30)}, Selection((), 2, "expired", at(2))),
    ],
)
def test_select(policy: str, after: float, now: float, options: dict[str, Any], expected: Selection) -> None:
    assert answer(policy, after, now, **options) == expected


def test_a_clock_that_jumps_56_years_costs_nothing_and_runs_once() -> None:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    now = datetime(2026, 3, 14, 10, tzinfo=UTC)
    found = select(
        every(seconds=1),
        epoch,
        now,
        now=now,
        policy=CatchUp.LATEST,
        window=WINDOW,
        term_start=epoch,
        limit=1,
    )
    # The handed case counts from the fire after the epoch's own: 1,773,482,399 given up, one run.
    assert found == Selection((now,), 1_773_482_399, "coalesced", now)


triggers = st.one_of(
    st.integers(1, 7200).map(lambda seconds: Every(timedelta(seconds=seconds))),
    st.sampled_from(["*/7 * * * *", "0 6 * * *", "30 2 * * *", "15 */3 * * 1-5"]).map(
        lambda text: Cron(text, "Europe/Stockholm")
    ),
)


@settings(deadline=None)  # a busy machine is slow, not wrong
@given(
    trigger=triggers,
    gap=st.integers(0, 4 * 3600),
    window=st.integers(1, 4 * 3600),
    policy=st.sampled_from(list(CatchUp)),
    start=st.integers(0, 4 * 3600),
    limit=st.integers(1, 50),
)
def test_every_due_time_is_answered_for_exactly_once(
    trigger: Trigger, gap: int, window: int, policy: CatchUp, start: int, limit: int
) -> None:
    after, now = T, T + timedelta(seconds=gap)
    dues = between(trigger, after, now, 10**6)
    answered, cursor = 0, after
    while True:
        found = select(
            trigger,
            cursor,
            now,
            now=now,
            policy=policy,
            window=timedelta(seconds=window),
            term_start=T + timedelta(seconds=start),
            limit=limit,
        )
        if found.until is None:
            break
        assert list(found.run) == sorted(set(found.run))
        assert all(cursor < due <= found.until for due in found.run)
        assert len(found.run) <= limit
        assert bool(found.reason) == bool(found.missed)
        answered += len(found.run) + found.missed
        assert found.until > cursor
        cursor = found.until
    assert answered == len(dues)


def test_a_cron_job_on_the_day_the_clock_goes_forward_is_caught_up_once() -> None:
    trigger = cron("30 2 * * *", "Europe/Stockholm")
    after = datetime(2026, 3, 28, 12, tzinfo=UTC)
    now = datetime(2026, 3, 29, 12, tzinfo=UTC)
    found = select(
        trigger, after, now, now=now, policy=CatchUp.ALL, window=timedelta(days=1), term_start=now, limit=9
    )
    assert found.run == (datetime(2026, 3, 29, 1, tzinfo=UTC),)
