"""Times as logs write them: nanoseconds from a stamp, a stamp from nanoseconds, an instant from a text."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache

SECOND_NS = 1_000_000_000
LATEST_NS = 2**63 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RFC3339 = re.compile(
    rb"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d):(\d\d)(?:\.(\d{1,9})\d*)?(?:[Zz]|([+-])(\d\d):(\d\d))(?=[ \r]|\Z)"
)
_OFFSET_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{6})?[+-]\d\d:\d\d(?::\d\d(?:\.\d{6})?)?")
_NAIVE_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{6})?")
_ZONED_TIME = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?: (\S.*))?", re.DOTALL)
_NUMERIC_ZONE = re.compile(r"(?:UTC|GMT)?([+-])(\d\d):?(\d\d)?(?::?\d\d)?")


def parse_stamp(line: bytes) -> tuple[int, int] | None:
    """Nanoseconds since the epoch and the length of the RFC 3339 stamp that `line` begins with.

    None when the line begins with something else, with a date that does not exist, or with an instant that
    64 signed bits cannot hold. Docker's own form (nine digits, Z) takes a short cut.
    """
    if line[29:31] == b"Z " and line[19:20] == b"." and line[20:29].isdigit() and line[17:19].isdigit():
        minute = _minute_ns(line[:16])
        if minute is not None and line[16:17] == b":":
            return minute + int(line[17:19]) * SECOND_NS + int(line[20:29]), 30
    return _parse_any(line)


def _parse_any(line: bytes) -> tuple[int, int] | None:
    match = _RFC3339.match(line)
    if match is None:
        return None
    date, minute, second, fraction, sign, hours, minutes = match.groups()
    start = _minute_ns(date + b"T" + minute)
    if start is None or int(second) > 60:
        return None
    stamp = start + int(second) * SECOND_NS + int((fraction or b"0").ljust(9, b"0"))
    if sign:
        offset = (int(hours) * 3600 + int(minutes) * 60) * SECOND_NS
        stamp += offset if sign == b"-" else -offset
    return (stamp, match.end()) if 0 <= stamp <= LATEST_NS else None


@lru_cache(maxsize=4096)
def _minute_ns(text: bytes) -> int | None:
    try:
        minute = datetime.strptime(text.decode("ascii"), "%Y-%m-%dT%H:%M").replace(tzinfo=UTC)
    except ValueError:
        return None
    stamp = int((minute - _EPOCH).total_seconds()) * SECOND_NS
    return stamp if 0 <= stamp <= LATEST_NS - 120 * SECOND_NS else None


def format_stamp(stamp_ns: int) -> str:
    """RFC 3339 in UTC with nine digits, as `docker logs -t` prints it."""
    seconds, fraction = divmod(stamp_ns, SECOND_NS)
    return f"{_EPOCH + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S}.{fraction:09d}Z"


def instant(stamp_ns: int) -> datetime:
    """The same instant as an aware datetime in UTC, cut to microseconds."""
    return _EPOCH + timedelta(microseconds=stamp_ns // 1000)


def nanoseconds(moment: datetime) -> int:
    """Nanoseconds since the epoch of an aware datetime."""
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000


def offset_time_utc(text: str) -> datetime | None:
    """`str()` of an aware datetime, in UTC; None when the text is anything else."""
    if not _OFFSET_TIME.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def is_naive_time(text: str) -> bool:
    """Whether the text is `str()` of a datetime without an offset, as APScheduler 2 printed it."""
    return _NAIVE_TIME.fullmatch(text) is not None


def is_zoned_time(text: str) -> bool:
    """Whether the text has the form that follows `next run at: `; its zone may be any name, or missing."""
    return _ZONED_TIME.fullmatch(text) is not None


def zoned_time_utc(text: str) -> datetime | None:
    """The instant of `YYYY-MM-DD HH:MM:SS ZONE`, only where the zone is UTC, GMT or a number.

    `CST` and its like name several zones, so they give None rather than a guess.
    """
    match = _ZONED_TIME.fullmatch(text)
    zone = _fixed_zone(match[2]) if match and match[2] else None
    if match is None or zone is None:
        return None
    try:
        return datetime.fromisoformat(match[1]).replace(tzinfo=zone).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _fixed_zone(name: str) -> timezone | None:
    if name in ("UTC", "GMT", "Z"):
        return UTC
    match = _NUMERIC_ZONE.fullmatch(name)
    if match is None:
        return None
    minutes = int(match[2]) * 60 + int(match[3] or 0)
    return timezone(timedelta(minutes=-minutes if match[1] == "-" else minutes)) if minutes < 1440 else None
