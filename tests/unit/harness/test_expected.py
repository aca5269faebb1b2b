"""The harness's own due times, against the scheduler's: two implementations that share nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from argus_sched import due_times
from argus_sched.harness import expected
from argus_sched.harness.expected import Plan

START = datetime(2026, 10, 24, 22, 0, 30, tzinfo=UTC)  # the night on which Europe's clocks go back


def milliseconds(instant: datetime) -> int:
    return (instant - due_times.EPOCH) // timedelta(milliseconds=1)


def test_an_interval_counts_from_the_epoch_and_includes_its_end() -> None:
    plan = Plan("a", "A", every_ms=1500, phase_ms=200)
    assert list(expected.due_times(plan, 200, 4700)) == [1700, 3200, 4700]
    assert list(expected.due_times(plan, 199, 200)) == [200]


@pytest.mark.parametrize(
    ("plan", "trigger"),
    [
        (Plan("a", "A", every_ms=7000), due_times.every(seconds=7)),
        (
            Plan("a", "A", every_ms=90_000, phase_ms=400),
            due_times.every(seconds=90, phase=timedelta(milliseconds=400)),
        ),
        (Plan("a", "A", minutes=1), due_times.cron("*/1 * * * *")),
        (
            Plan("a", "A", minutes=7, zone="Europe/Stockholm"),
            due_times.cron("*/7 * * * *", "Europe/Stockholm"),
        ),
        (Plan("a", "A", minutes=7, zone="Asia/Kathmandu"), due_times.cron("*/7 * * * *", "Asia/Kathmandu")),
    ],
)
def test_both_enumerators_agree_over_the_night_the_clocks_change(
    plan: Plan, trigger: due_times.Trigger
) -> None:
    until = START + timedelta(hours=5)
    theirs = due_times.between(trigger, START, until, 100_000)
    ours = list(expected.due_times(plan, milliseconds(START), milliseconds(until)))
    assert ours == [milliseconds(due) for due in theirs]


def test_both_compute_the_same_jitter() -> None:
    plan = Plan("tick", "Tick", every_ms=1000, jitter_ms=400)
    for second in range(50):
        due = START + timedelta(seconds=second)
        theirs = due_times.jitter("tick", due, timedelta(milliseconds=400)).total_seconds()
        assert expected.jitter_seconds(plan, milliseconds(due)) == pytest.approx(theirs, abs=2e-6)
