"""Settings that cannot work are refused in one sentence."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from argus_sched.errors import SettingsError
from argus_sched.scheduling.leadership import Timing
from argus_sched.scheduling.settings import GUARDS, SchedulerOptions, Settings

DSN = "postgresql://localhost/x"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"namespace": ""}, "namespace ''"),
        ({"namespace": "a\nb"}, "printable"),
        ({"dsn": None}, "needs a DSN"),
        ({"dsn": None, "claims": "redis", "redis_url": "redis://x"}, "needs a DSN"),
        ({"claims": "redis"}, "needs redis_url"),
        ({"claims": "file"}, "claims is 'file': use one of postgres, redis, none"),
        ({"coordination": "two"}, "coordination is 'two': use one of leader, every_worker"),
        ({"threads": 0}, "threads is 0"),
        ({"fire_lock_ttl": 0}, "fire_lock_ttl is 0: use a whole number from 1"),
        ({"fire_lock_ttl": 0.5}, "fire_lock_ttl is 0.5"),
        ({"run_now_ttl": 0}, "run_now_ttl is 0"),
        ({"max_failures": 0}, "max_failures is 0"),
        ({"threads": True}, "threads is True"),
        ({"stop_timeout": -1.0}, "stop_timeout is -1.0"),
        ({"stop_timeout": "5"}, "stop_timeout is '5': use seconds"),
        ({"retention": 30}, "retention is 30: use a timedelta"),
        ({"key": 2**63}, "key is 9223372036854775808: use a whole number of 64 bits"),
        ({"key": "1"}, "key is '1'"),
        ({"namespace": None}, "namespace None"),
        ({"dsn": 5}, "needs a DSN"),
        ({"timing": "fast"}, "timing is 'fast': use Timing.default()"),
        ({"timing": Timing(lease=1.0)}, "unsafe timing: tick + tick_timeout < 0.8 x lease"),
        ({"thread": 5}, "a scheduler has no option 'thread'"),
        ({"without": frozenset({"gravity"})}, "no guard 'gravity'"),
    ],
)
def test_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Settings.of(**{"namespace": "labs", "dsn": DSN, **options}).check()
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("options", "needs", "leads"),
    [
        ({"dsn": DSN}, True, True),
        ({"coordination": "every_worker", "claims": "redis", "redis_url": "redis://x"}, False, False),
        ({"coordination": "every_worker", "claims": "none"}, False, False),
        ({"dsn": DSN, "coordination": "every_worker"}, True, False),
    ],
)
def test_the_two_halves_of_coordination(options: dict[str, Any], needs: bool, leads: bool) -> None:
    settings = Settings(namespace="labs", **options)
    assert (settings.needs_postgres, settings.leads) == (needs, leads)


def test_production_is_the_default_and_read_from_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVIRONMENT", "development")
    assert Settings(namespace="labs", dsn=DSN).production
    assert not Settings(namespace="labs", dsn=DSN, environment="development").production


@pytest.mark.parametrize("environment", ["production", "Production", " PROD ", "", None])
def test_what_may_be_production_fails_closed(environment: str | None) -> None:
    assert Settings(namespace="labs", dsn=DSN, environment=environment).production


def test_a_guard_that_is_off_changes_what_it_guards() -> None:
    bare = Settings(namespace="labs", dsn=DSN, without=frozenset(GUARDS))
    assert not bare.guarded_by_claims
    assert bare.effective_timing.lease is None
    whole = Settings(namespace="labs", dsn=DSN)
    assert whole.guarded_by_claims
    assert whole.effective_timing == Timing.default()


def test_a_type_checker_knows_every_option_of_a_scheduler() -> None:
    told = {each.name for each in fields(Settings)} - {"namespace", "dsn", "environment", "unknown"}
    assert SchedulerOptions.__annotations__.keys() == told
