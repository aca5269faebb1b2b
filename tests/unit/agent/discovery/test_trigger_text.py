"""Trigger texts of APScheduler's log, and that what a pack says is due when APScheduler is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import pytest
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger

from argus_sched.agent.discovery.trigger_text import read_trigger
from argus_sched.due_times import upcoming

START = datetime(2026, 2, 20, 1, 2, 3, tzinfo=UTC)


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        ({"minutes": 15}, "every: 15m"),
        ({"hours": 1, "minutes": 30}, "every: 1h30m"),
        ({"days": 1}, "every: 1d"),
        ({"weeks": 1}, "every: 7d"),
        ({"days": 2, "hours": 3, "minutes": 4, "seconds": 5}, "every: 51h4m5s"),
        ({"seconds": 30}, "every: 30s"),
    ],
)
def test_an_interval_as_apscheduler_prints_it(arguments: dict[str, int], written: str) -> None:
    told = read_trigger(str(IntervalTrigger(**arguments)), "UTC")
    assert told is not None
    assert told.written == written


CRONS = [
    ({"hour": 6, "minute": 0}, 'cron: "0 6 * * *"'),
    ({"hour": 4, "minute": 17}, 'cron: "17 4 * * *"'),
    ({"hour": 6}, 'cron: "0 6 * * *"'),
    ({"minute": 0}, 'cron: "0 * * * *"'),
    ({"minute": "*/5"}, 'cron: "*/5 * * * *"'),
    ({"day": 1}, 'cron: "0 0 1 * *"'),
    ({"month": 3}, 'cron: "0 0 1 3 *"'),
    ({"day_of_week": 0, "hour": 3}, 'cron: "0 3 * * mon"'),
    ({"day_of_week": "0-4", "hour": 9, "minute": 30}, 'cron: "30 9 * * mon-fri"'),
    ({"day_of_week": "sat,sun", "hour": "8-10"}, 'cron: "0 8-10 * * sat,sun"'),
]


@pytest.mark.parametrize(("arguments", "written"), CRONS)
def test_a_cron_trigger_is_due_when_apscheduler_is(arguments: dict[str, Any], written: str) -> None:
    theirs = CronTrigger(timezone="UTC", **arguments)
    told = read_trigger(str(theirs), "UTC")
    assert told is not None
    assert told.written == written
    assert list(islice(upcoming(told.rule, START), 20)) == dues_of(theirs)


def test_a_zone_other_than_utc_is_written_beside_the_fields() -> None:
    told = read_trigger("cron[hour='6', minute='0']", "Europe/Stockholm")
    assert told is not None
    assert told.written == 'cron: "0 6 * * *", timezone: Europe/Stockholm'
    assert told.rule.next_after(START) == datetime(2026, 2, 20, 5, tzinfo=UTC)


def dues_of(trigger: CronTrigger) -> list[datetime]:
    """The next twenty due times by APScheduler."""
    dues: list[datetime] = []
    while len(dues) < 20:
        after = dues[-1] + timedelta(microseconds=1) if dues else START
        dues.append(trigger.get_next_fire_time(None, after).astimezone(UTC))
    return dues


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cron",
        "cron[]",
        "interval[0:00:00]",
        "cron[second='*/10']",
        "cron[hour='6', minute='0', second='30']",
        "cron[week='*/2']",
        "cron[year='2027']",
        "cron[day='last']",
        "cron[day='1', day_of_week='mon']",
        "cron[day_of_week='*/2']",
        "cron[hour='99']",
        "date[2026-03-14 10:00:15 UTC]",
        "or[cron[hour='6'], cron[hour='7']]",
        "and[interval[0:15:00]]",
        "interval[0:15:00] tail",
    ],
)
def test_what_a_pack_cannot_say_is_nothing(text: str) -> None:
    assert read_trigger(text, "UTC") is None
