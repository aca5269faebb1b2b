"""When a job is due: the arithmetic that scheduler and agent share.

A due time is nominal and deterministic: every process, at any time, computes the same instants, and a
restart changes none of them. All instants are aware and in UTC.

- An interval is due at the UTC epoch + n × interval (+ a fixed phase).
- A cron expression is matched in its zone. On the two odd days of a year:
  a fixed time in the repeated hour is due once, in the first pass; a wildcard (minute or hour field begins
  with `*`) in each pass; a time that the clock skips is due once, at the first instant after the gap, unless
  the instant it would have been (by the offset before the gap) is itself due.
- Jitter is a hash of job and due time; it delays a run and is never part of the due time.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import cached_property, lru_cache
from itertools import islice, pairwise
from typing import Protocol, runtime_checkable
from zoneinfo import ZoneInfo

from argus_sched import cron_fields
from argus_sched.cron_fields import CronFields
from argus_sched.errors import JobError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
# 29 February can be eight years away (1896 → 1904, 2096 → 2104); nothing a cron expression names is rarer.
RAREST_DAYS = 8 * 366 + 1
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


@runtime_checkable
class Trigger(Protocol):
    """A rule that says when a job is due."""

    def next_after(self, instant: datetime) -> datetime | None:
        """The first due time strictly later than `instant`; None when there is none any more."""
        ...

    def latest_at_or_before(self, instant: datetime) -> datetime | None:
        """The last due time not later than `instant`; None when there was none yet."""
        ...

    def count_between(self, after: datetime, until: datetime) -> int:
        """How many due times lie in (after, until], computed without visiting each where that is possible."""
        ...


@dataclass(frozen=True)
class Every:
    """Due at the UTC epoch + n × `interval` + `phase`."""

    interval: timedelta
    phase: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        if self.interval <= timedelta(0):
            raise JobError(
                f"an interval must be longer than zero, not {self.interval}: give seconds, minutes or more"
            )
        if not timedelta(0) <= self.phase < self.interval:
            raise JobError(
                f"a phase must be from zero to under the interval {self.interval}, not {self.phase}"
            )

    def __str__(self) -> str:
        return f"interval[{self.interval}]"

    def next_after(self, instant: datetime) -> datetime | None:
        return self._due(self._index(instant) + 1)

    def latest_at_or_before(self, instant: datetime) -> datetime | None:
        return self._due(self._index(instant))

    def count_between(self, after: datetime, until: datetime) -> int:
        return max(0, self._index(until) - self._index(after))

    def _index(self, instant: datetime) -> int:
        return (instant - EPOCH - self.phase) // self.interval

    def _due(self, index: int) -> datetime | None:
        try:
            return EPOCH + self.phase + index * self.interval
        except OverflowError:
            return None


@dataclass(frozen=True)
class Once:
    """Due one single time."""

    at: datetime

    def __post_init__(self) -> None:
        if self.at.tzinfo is None:
            raise JobError(
                f"the time {self.at.isoformat()} of a one-time job has no zone: give an aware datetime"
            )
        object.__setattr__(self, "at", self.at.astimezone(UTC))

    def __str__(self) -> str:
        return f"date[{self.at:%Y-%m-%d %H:%M:%S} UTC]"

    def next_after(self, instant: datetime) -> datetime | None:
        return self.at if self.at > instant else None

    def latest_at_or_before(self, instant: datetime) -> datetime | None:
        return self.at if self.at <= instant else None

    def count_between(self, after: datetime, until: datetime) -> int:
        return int(after < self.at <= until)


@dataclass(frozen=True)
class Cron:
    """Due when the five fields of `expression` match the wall clock of `zone`."""

    expression: str
    zone: str = "UTC"

    def __post_init__(self) -> None:
        _ = self.fields, self._tz
        if next(self._days(date(2026, 1, 1), 1), None) is None:
            raise JobError(
                f"cron {self.expression!r} names a day that never comes: check day of month and month"
            )

    def __str__(self) -> str:
        minute, hour, day, month, weekday = self.fields.texts
        return (
            f"cron[month='{month}', day='{day}', day_of_week='{weekday}', hour='{hour}', minute='{minute}']"
        )

    @cached_property
    def fields(self) -> CronFields:
        """The parsed expression."""
        return cron_fields.parse(self.expression)

    @cached_property
    def _tz(self) -> tzinfo:
        return _zone(self.zone)

    def next_after(self, instant: datetime) -> datetime | None:
        # A day that the clock skips altogether is due at the start of the next, so look from the day before.
        for day in self._days(instant.astimezone(self._tz).date() - DAY, 1):
            dues = _dues_of_day(self, day)
            if dues and dues[-1] > instant:
                return dues[bisect_right(dues, instant)]
        return None

    def latest_at_or_before(self, instant: datetime) -> datetime | None:
        for day in self._days(instant.astimezone(self._tz).date() + DAY, -1):
            dues = _dues_of_day(self, day)
            if dues and dues[0] <= instant:
                return dues[bisect_right(dues, instant) - 1]
        return None

    def count_between(self, after: datetime, until: datetime) -> int:
        if until <= after:
            return 0
        first = after.astimezone(self._tz).date() - DAY
        last = until.astimezone(self._tz).date() + DAY
        dues: set[datetime] = set()
        count = 0
        for offset in range((last - first).days + 1):
            day = first + offset * DAY
            if not self.fields.matches_day(day):
                continue
            found = _dues_of_day(self, day)
            if after < found[0] and found[-1] <= until and found[0] not in dues:
                count += len(found)
                dues = {found[-1]}
            else:
                inside = {due for due in found if after < due <= until} - dues
                count += len(inside)
                dues |= inside
        return count

    def _days(self, start: date, step: int) -> Iterator[date]:
        """The days that match, from `start` on or back, as far as the rarest expression needs."""
        for distance in range(RAREST_DAYS):
            try:
                day = start + step * distance * DAY
            except OverflowError:
                return
            if self.fields.matches_day(day):
                yield day


def every(
    *,
    weeks: float = 0,
    days: float = 0,
    hours: float = 0,
    minutes: float = 0,
    seconds: float = 0,
    phase: timedelta = timedelta(0),
) -> Every:
    """An interval; `phase` shifts all its due times by a fixed amount."""
    return Every(timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds), phase)


def cron(expression: str, timezone: str = "UTC") -> Cron:
    """A five-field cron expression in `timezone`; weekdays 0 and 7 are Sunday, names and `@daily` work."""
    return Cron(expression, timezone)


def once(at: datetime) -> Once:
    """One single time; `at` must be aware."""
    return Once(at)


def daily(at: str, timezone: str = "UTC") -> Cron:
    """Each day at `at`, for example `daily("06:00", "Europe/Stockholm")`."""
    hour, minute = _time_of_day(at)
    return Cron(f"{minute} {hour} * * *", timezone)


def weekly(weekday: str, at: str, timezone: str = "UTC") -> Cron:
    """Each week on `weekday` (mon … sun) at `at`."""
    name = str(weekday).lower()[:3]
    if name not in WEEKDAYS:
        raise JobError(f"{weekday!r} is no weekday: use one of mon, tue, wed, thu, fri, sat, sun")
    hour, minute = _time_of_day(at)
    return Cron(f"{minute} {hour} * * {name}", timezone)


def monthly(day: int, at: str, timezone: str = "UTC") -> Cron:
    """Each month on day `day` at `at`; months without that day are left out."""
    if not 1 <= day <= 31:
        raise JobError(f"{day} is no day of a month: use 1 to 31")
    hour, minute = _time_of_day(at)
    return Cron(f"{minute} {hour} {day} * *", timezone)


def upcoming(trigger: Trigger, after: datetime) -> Iterator[datetime]:
    """The due times later than `after`, in order; ends with an error should a trigger ever stand still."""
    due = trigger.next_after(after)
    while due is not None:
        yield due
        later = trigger.next_after(due)
        if later is not None and later <= due:
            raise JobError(
                f"trigger {trigger} does not move on from {due.isoformat()}: the job cannot be scheduled"
            )
        due = later


def between(trigger: Trigger, after: datetime, until: datetime, limit: int) -> list[datetime]:
    """The first `limit` due times in (after, until]."""
    found = []
    for due in islice(upcoming(trigger, after), limit):
        if due > until:
            break
        found.append(due)
    return found


def latest_between(trigger: Trigger, after: datetime, until: datetime) -> datetime | None:
    """The last due time in (after, until], None when there is none; its cost does not grow with the span."""
    due = trigger.latest_at_or_before(until)
    return due if due is not None and due > after else None


def longest_gap(trigger: Trigger, after: datetime, fires: int = 10) -> timedelta:
    """The longest gap between the next `fires` due times; zero when fewer than two are left."""
    if isinstance(trigger, Every):
        return trigger.interval
    dues = list(islice(upcoming(trigger, after), fires))
    return max((later - earlier for earlier, later in pairwise(dues)), default=timedelta(0))


def jitter(key: str, due: datetime, window: timedelta) -> timedelta:
    """A delay in [0, window) that is the same for one job and due time in every process."""
    if window <= timedelta(0):
        return timedelta(0)
    digest = hashlib.sha256(f"{key}\x1f{(due - EPOCH) // timedelta(microseconds=1)}".encode()).digest()
    return window * (int.from_bytes(digest[:6], "big") / 2**48)


@lru_cache(maxsize=4096)
def _dues_of_day(trigger: Cron, day: date) -> tuple[datetime, ...]:
    """The due times that the wall-clock times of one local day stand for, in order."""
    tz = trigger._tz
    midnight = datetime.combine(day, datetime.min.time(), tz)
    offset, following = midnight.utcoffset(), (midnight + DAY).utcoffset()
    times = [midnight.replace(hour=hour, minute=minute) for hour, minute in trigger.fields.times]
    if offset == following and offset == midnight.replace(fold=1).utcoffset() and offset is not None:
        return tuple([time.replace(tzinfo=UTC) - offset for time in times])
    return tuple(sorted({due for time in times for due in _dues_of_time(trigger, time)}))


def _dues_of_time(trigger: Cron, time: datetime) -> list[datetime]:
    """The due times of one wall-clock time on a day whose offset changes."""
    first, second = time.replace(fold=0).astimezone(UTC), time.replace(fold=1).astimezone(UTC)
    if first == second:
        return [first]
    if first < second:  # the clock shows this time twice
        return [first, second] if trigger.fields.wildcard else [first]
    # The clock skips this time: `first`, by the offset before the gap, lies after it, `second` before it.
    local = first.astimezone(trigger._tz)
    if trigger.fields.matches(local):
        return []
    return [_offset_change(trigger._tz, second, first)]


def _offset_change(tz: tzinfo, before: datetime, after: datetime) -> datetime:
    """The instant in (before, after] at which the offset of `tz` changes, to the second."""
    old = before.astimezone(tz).utcoffset()
    seconds = range(int((after - before).total_seconds()) + 1)
    index = bisect_left(
        seconds, True, key=lambda s: (before + timedelta(seconds=s)).astimezone(tz).utcoffset() != old
    )
    return before + timedelta(seconds=index)


@lru_cache(maxsize=256)
def _zone(name: str) -> tzinfo:
    if name.upper() == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise JobError(
            f"time zone {name!r} is not known here: use an IANA name such as Europe/Stockholm"
        ) from error


def _time_of_day(text: str) -> tuple[int, int]:
    hour, separator, minute = str(text).partition(":")
    if not (separator and hour.isdigit() and minute.isdigit() and int(hour) < 24 and int(minute) < 60):
        raise JobError(f"{text!r} is no time of day: use hours and minutes such as 06:00")
    return int(hour), int(minute)
