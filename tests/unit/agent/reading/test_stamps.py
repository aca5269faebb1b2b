"""Stamps and times as logs write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argus_sched.agent.reading import stamps

TEN = 1773482400 * stamps.SECOND_NS  # 2026-03-14T10:00:00Z


@pytest.mark.parametrize(
    ("text", "stamp_ns"),
    [
        (b"2026-03-14T10:00:00.000000001Z text", TEN + 1),
        (b"2026-03-14T10:00:00Z text", TEN),
        (b"2026-03-14T10:00:00.5Z", TEN + 500_000_000),
        (b"2026-03-14T12:00:00.25+02:00 text", TEN + 250_000_000),
        (b"2026-03-14T04:30:00-05:30 text", TEN),
        (b"2026-03-14t10:00:00z text", TEN),
        (b"2026-03-14T09:59:60Z leap", TEN),
        (b"2026-03-14T10:00:00.1234567899Z too fine", TEN + 123_456_789),
        (b"2026-03-14 10:00:00Z blank", None),
        (b"2026-03-14T10:00:00 no zone", None),
        (b"2026-02-30T10:00:00.000000000Z no such day", None),
        (b"2026-03-14T25:00:00.000000000Z no such hour", None),
        (b"2026-03-14T10:00:61.000000000Zxx", None),
        (b"2026-03-14T10:00:0 .000000000Z text", None),
        (b"2026-03-14T10:00:00.1_0000000Z text", None),
        (b"0001-01-01T00:00:00Z never", None),
        (b"9999-12-31T23:59:59.000000000Z far", None),
        (b"2026-03-14T10:00:00Ztext", None),
        (b"", None),
        (b"INFO: 2026-03-14T10:00:00Z", None),
    ],
)
def test_any_rfc_3339_stamp_is_read(text: bytes, stamp_ns: int | None) -> None:
    found = stamps.parse_stamp(text)
    assert (found[0] if found else None) == stamp_ns


@given(st.integers(0, 2**63 - 1 - 200 * stamps.SECOND_NS))
def test_a_stamp_comes_back_from_its_text(stamp_ns: int) -> None:
    text = stamps.format_stamp(stamp_ns)
    assert len(text) == 30
    assert stamps.parse_stamp(text.encode()) == (stamp_ns, 30)


@given(st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1)))  # zone added below
def test_an_instant_keeps_its_microseconds(moment: datetime) -> None:
    aware = moment.replace(tzinfo=UTC)
    assert stamps.instant(stamps.nanoseconds(aware)) == aware


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2026-03-14 10:00:00+00:00", datetime(2026, 3, 14, 10, tzinfo=UTC)),
        ("2026-03-14 10:00:00.000512-03:00", datetime(2026, 3, 14, 13, microsecond=512, tzinfo=UTC)),
        (
            "1880-01-01 00:00:00+01:12:12",
            datetime(1880, 1, 1, tzinfo=UTC) - timedelta(hours=1, minutes=12, seconds=12),
        ),
        ("2026-03-14 10:00:00", None),
        ("2026-03-14T10:00:00+00:00", None),
        ("0001-01-01 00:00:00+01:00", None),
        ("2026-13-14 10:00:00+00:00", None),
        ("tomorrow", None),
    ],
)
def test_a_scheduled_time_needs_its_offset(text: str, utc: datetime | None) -> None:
    assert stamps.offset_time_utc(text) == utc
