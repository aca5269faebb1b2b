"""Instants and lengths as text."""

from __future__ import annotations

from datetime import timedelta, timezone

import pytest

from argus_sched.agent.instants import about, clock_text, parse_rfc3339, rfc3339
from tests.unit.agent.judging.evidence_cases import NOON

EAST = timezone(timedelta(hours=5, minutes=45))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "0s"),
        (0.9, "0s"),
        (61, "1m1s"),
        (3599.9, "59m59s"),
        (3661, "1h1m"),
        (86399, "23h59m"),
        (90005, "25h"),
        (2 * 86400, "2d"),
        (9 * 86400 + 7300, "9d2h"),
        (4000 * 86400, "4000d"),
    ],
)
def test_a_length_is_told_in_its_two_largest_units(seconds: float, text: str) -> None:
    assert about(timedelta(seconds=seconds)) == text


def test_instants_are_written_in_utc_and_read_back() -> None:
    local = NOON.astimezone(EAST)
    assert rfc3339(local) == "2026-03-14T12:00:00Z"
    assert clock_text(local) == "2026-03-14 12:00:00Z"
    assert parse_rfc3339("2026-03-14T17:45:00+05:45") == NOON
    exact = NOON + timedelta(microseconds=3)
    assert parse_rfc3339(rfc3339(exact)) == exact


@pytest.mark.parametrize("text", ["2026-03-14T12:00:00", "2026-03-14", "noon", ""])
def test_an_instant_without_an_offset_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"offset|Invalid"):
        parse_rfc3339(text)
