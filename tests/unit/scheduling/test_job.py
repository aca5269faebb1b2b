"""Declaring jobs: what is accepted, and the one sentence for what is not."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from argus_sched.due_times import cron, every, once
from argus_sched.errors import JobError
from argus_sched.scheduling import triggers
from argus_sched.scheduling.catch_up import CatchUp
from argus_sched.scheduling.job import Fire, JobOptions, JobRegistry, declare
from argus_sched.scheduling.runs import body_of

NOW = datetime(2026, 3, 14, 10, tzinfo=UTC)
MINUTE = every(minutes=1)


def plain() -> str:
    return "plain"


def with_fire(fire: Fire) -> Fire:
    return fire


def with_optional_fire(fire: Fire | None = None) -> Fire | None:
    return fire


def with_any_first_name(due: Fire) -> Fire:
    return due


async def coroutine(fire: Fire) -> Fire:
    await asyncio.sleep(0)
    return fire


def generator() -> Iterator[None]:
    yield


async def async_generator() -> AsyncIterator[None]:
    yield


class Bound:
    def method(self, fire: Fire) -> Fire:
        return fire


FIRE = Fire(NOW, "x", epoch=3, attempt=2)


@pytest.mark.parametrize(
    ("func", "answer"),
    [
        (plain, "plain"),
        (with_fire, FIRE),
        (with_optional_fire, FIRE),
        (with_any_first_name, FIRE),
        (coroutine, FIRE),
        (Bound().method, FIRE),
        (functools.partial(with_fire), FIRE),
        (lambda: 7, 7),
        (lambda *parts: len(parts), 0),
    ],
)
def test_a_job_takes_nothing_or_the_fire(func: Any, answer: object) -> None:
    job = declare(func, MINUTE, id="x", now=NOW)
    assert body_of(job, FIRE)() == answer


def test_id_and_name_default_to_the_function() -> None:
    job = declare(plain, MINUTE, now=NOW)
    assert (job.id, job.name) == ("plain", "plain")


@pytest.mark.parametrize(
    ("func", "trigger", "options", "said"),
    [
        (lambda a, b: None, MINUTE, {"id": "x"}, "takes (a, b)"),
        (lambda *, fire: None, MINUTE, {"id": "x"}, "takes (fire)"),
        ("not a function", MINUTE, {"id": "x"}, "is not a function"),
        (generator, MINUTE, {}, "job 'generator' is a generator, whose body nobody would run"),
        (functools.partial(async_generator), MINUTE, {"id": "x"}, "is a generator"),
        (plain, "every minute", {}, "has no trigger but 'every minute'"),
        (plain, MINUTE, {"id": ""}, "empty id"),
        (plain, MINUTE, {"name": ""}, "empty name"),
        (plain, MINUTE, {"name": "two\nlines"}, "unprintable"),
        (plain, MINUTE, {"name": "tab\there"}, "unprintable"),
        (plain, MINUTE, {"name": "x" * 201}, "201 characters: use at most 200"),
        (plain, MINUTE, {"id": "x" * 201}, "201 characters"),
        (plain, MINUTE, {"max_instances": 0}, "max_instances 0: use 1 or more"),
        (plain, MINUTE, {"catch_up": "sometimes"}, "use 'latest', 'all' or 'skip'"),
        (plain, MINUTE, {"catch_up": "all", "coalesce": True}, "drop one of the two"),
        (plain, MINUTE, {"catch_up": "latest", "coalesce": False}, "drop one of the two"),
        (plain, MINUTE, {"catch_up_window": timedelta(0)}, "use a timedelta of more than zero"),
        (plain, MINUTE, {"catch_up_window": 600}, "has the catch_up_window 600: use a timedelta"),
        (plain, MINUTE, {"first_run_after": timedelta(0)}, "use a timedelta of more than zero"),
        (plain, MINUTE, {"id": 7}, "the id of job 7 is 7: use text"),
        (plain, MINUTE, {"max_instances": True}, "max_instances True"),
        (plain, MINUTE, {"catchup": "all"}, "has the option 'catchup', which is none"),
        (plain, triggers.every(minutes=0), {}, "job 'plain': an interval must be longer than zero"),
        (plain, triggers.every(minute=1), {}, "every(...) is no trigger: every() got an unexpected keyword"),
        (
            plain,
            triggers.daily(6),
            {},
            "job 'plain': 6 is no time of day: use hours and minutes such as 06:00",
        ),
        (plain, MINUTE, {"on_interrupted": "maybe"}, "use 'at_most_once' or 'at_least_once'"),
        (plain, MINUTE, {"jitter": timedelta(seconds=-1)}, "use a timedelta of zero or more"),
    ],
)
def test_a_wrong_declaration_is_one_sentence(
    func: Any, trigger: Any, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(JobError) as caught:
        declare(func, trigger, now=NOW, **options)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({}, CatchUp.LATEST),
        ({"coalesce": True}, CatchUp.LATEST),
        ({"coalesce": False}, CatchUp.ALL),
        ({"catch_up": "all"}, CatchUp.ALL),
        ({"catch_up": "all", "coalesce": False}, CatchUp.ALL),
        ({"catch_up": "skip"}, CatchUp.SKIP),
    ],
)
def test_coalesce_and_catch_up_say_the_same(options: dict[str, Any], rule: CatchUp) -> None:
    assert declare(plain, MINUTE, now=NOW, **options).catch_up is rule


@pytest.mark.parametrize(
    ("trigger", "window"),
    [
        (every(seconds=1), timedelta(minutes=10)),
        (every(hours=6), timedelta(hours=6)),
        (cron("0 6 * * *"), timedelta(days=1)),
        (once(NOW), timedelta(minutes=10)),
    ],
)
def test_the_window_is_one_interval_and_at_least_ten_minutes(trigger: Any, window: timedelta) -> None:
    assert declare(plain, trigger, now=NOW).catch_up_window == window


def test_an_id_or_a_name_is_used_once() -> None:
    registry = JobRegistry()
    registry.add(declare(plain, MINUTE, id="a", name="A", now=NOW))
    with pytest.raises(JobError, match="the job id 'a' is used twice"):
        registry.add(declare(plain, MINUTE, id="a", name="B", now=NOW))
    with pytest.raises(JobError, match="the job name 'A' is used twice, by 'a' and 'b'"):
        registry.add(declare(plain, MINUTE, id="b", name="A", now=NOW))
    assert [job.id for job in registry] == ["a"]
    with pytest.raises(JobError, match="no job with the id 'b'"):
        _ = registry["b"]


def hashed(*jobs: tuple[str, Any]) -> str:
    registry = JobRegistry()
    for job_id, trigger in jobs:
        registry.add(declare(plain, trigger, id=job_id, now=NOW))
    return registry.schedule_hash()


def test_the_schedule_hash_goes_by_what_is_declared_not_by_order() -> None:
    one = hashed(("a", MINUTE), ("b", cron("0 6 * * *")))
    assert one == hashed(("b", cron("0 6 * * *")), ("a", MINUTE))
    assert one != hashed(("a", MINUTE), ("b", cron("0 6 * * *", "Europe/Stockholm")))
    assert one != hashed(("a", MINUTE), ("c", cron("0 6 * * *")))
    assert one != hashed(("a", every(minutes=1, phase=timedelta(seconds=1))), ("b", cron("0 6 * * *")))


def test_jitter_is_the_same_everywhere_and_stays_before_the_next_due_time() -> None:
    job = declare(plain, every(seconds=10), jitter=timedelta(minutes=5), id="x", now=NOW)
    other = declare(plain, every(seconds=10), jitter=timedelta(minutes=5), id="y", now=NOW)
    dues = [NOW + timedelta(seconds=10 * n) for n in range(100)]
    delays = [job.delay(due) for due in dues]
    assert delays == [job.delay(due) for due in dues]
    assert delays != [other.delay(due) for due in dues]
    assert all(timedelta(0) <= delay < timedelta(seconds=10) for delay in delays)
    assert len(set(delays)) > 90


def test_a_type_checker_knows_every_option_of_a_job() -> None:
    taken = inspect.signature(declare).parameters.keys() - {"func", "trigger", "now", "unknown"}
    assert JobOptions.__annotations__.keys() == taken
