"""The handed cases about claims in Redis, against the rules that answer them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from argus_sched.errors import SettingsError
from argus_sched.scheduling import redis_scripts
from argus_sched.scheduling.settings import Settings


@pytest.fixture
def cases(field_cases: Callable[[str], Any]) -> dict[str, dict[str, Any]]:
    return {case["id"]: case for case in field_cases("redis")["cases"]}


@pytest.mark.parametrize("case", ["ttl-zero", "ttl-float"])
def test_a_ttl_that_redis_rejects_is_rejected_when_settings_are_read(
    cases: dict[str, dict[str, Any]], case: str
) -> None:
    with pytest.raises(SettingsError, match="use a whole number from 1"):
        Settings(namespace="x", dsn="x", fire_lock_ttl=cases[case]["ttl_s"]).check()


def test_no_script_deletes_a_claim(cases: dict[str, dict[str, Any]]) -> None:
    assert "never delete" in cases["blind-del"]["expect"]
    whole = "".join(value for name, value in vars(redis_scripts).items() if name.isupper())
    deleted = [line.strip() for line in whole.splitlines() if "'DEL'" in line]
    # What is deleted is the guard of a manual run, and only by its owner.
    assert deleted
    assert all("guard" in line for line in deleted)
    assert all("redis.call('GET', guard) ==" in line for line in deleted)


def test_a_claim_outlives_the_latest_worker_that_may_ask_for_it(cases: dict[str, dict[str, Any]]) -> None:
    late = cases["ttl-shorter-than-lateness"]
    lateness = timedelta(seconds=599.5)
    assert Settings(namespace="x", dsn="x").fire_lock_ttl > lateness.total_seconds() > late["ttl_s"]
