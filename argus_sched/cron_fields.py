"""The five fields of a cron expression, parsed by croniter and kept as sets.

Weekdays 0 and 7 are Sunday. When both day of month and day of week are given, a day matches when either
does, as in Vixie cron. Forms on which the common implementations disagree are refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from argus_sched.errors import JobError

NAMES = ("minute", "hour", "day of month", "month", "day of week")
ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FIELD = re.compile(r"[0-9a-z*,/-]+", re.IGNORECASE)
_RANGES = (range(60), range(24), range(1, 32), range(1, 13), range(7))


@dataclass(frozen=True)
class CronFields:
    """What an expression matches; `None` for days or weekdays means any."""

    texts: tuple[str, str, str, str, str]
    times: tuple[tuple[int, int], ...]
    days: frozenset[int] | None
    months: frozenset[int]
    weekdays: frozenset[int] | None

    @property
    def wildcard(self) -> bool:
        """Whether minute or hour begins with `*`: such a job follows the clock through a repeated hour."""
        return self.texts[0].startswith("*") or self.texts[1].startswith("*")

    def matches_day(self, day: date) -> bool:
        """Whether the job is due on that local day at all."""
        if day.month not in self.months:
            return False
        if self.days is None and self.weekdays is None:
            return True
        by_day = self.days is not None and day.day in self.days
        return by_day or (self.weekdays is not None and day.isoweekday() % 7 in self.weekdays)

    def matches(self, local: datetime) -> bool:
        """Whether the job is due at that wall-clock minute."""
        return self.matches_day(local.date()) and (local.hour, local.minute) in self.times


def parse(expression: str) -> CronFields:
    """The fields of `expression`; raises JobError that names the field and says what is accepted."""
    from croniter import CroniterError, croniter

    texts = ALIASES.get(expression.strip().lower(), expression).split()
    _refuse_ambiguous(expression, texts)
    try:
        expanded, _ = croniter.expand(" ".join(texts))
    except (CroniterError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise JobError(f"cron {expression!r} is not valid: {error}") from error
    minutes, hours, days, months, weekdays = (
        _numbers(values, known) for values, known in zip(expanded, _RANGES, strict=True)
    )
    return CronFields(
        texts=(texts[0], texts[1], texts[2], texts[3], texts[4]),
        times=tuple((hour, minute) for hour in sorted(hours) for minute in sorted(minutes)),
        days=None if texts[2] == "*" else days,
        months=months,
        weekdays=None if texts[4] == "*" else weekdays,
    )


def _refuse_ambiguous(expression: str, texts: list[str]) -> None:
    if len(texts) != len(NAMES):
        hint = (
            "seconds are not supported" if len(texts) > len(NAMES) else "give minute hour day month weekday"
        )
        raise JobError(f"cron {expression!r} has {len(texts)} fields instead of 5: {hint}")
    for name, text in zip(NAMES, texts, strict=True):
        if not _FIELD.fullmatch(text) or re.search(r"(?<![a-z])[lrhw](?![a-z])", text, re.IGNORECASE):
            raise JobError(
                f"cron {expression!r}: {text!r} as {name} is not supported: use numbers, names, * , - /"
            )
    day, weekday = texts[2], texts[4]
    if "*" not in (day, weekday) and (day.startswith("*") or weekday.startswith("*")):
        raise JobError(
            f"cron {expression!r} gives day of month and day of week, one of them with */N, which cron "
            "implementations read differently: list the days"
        )


def _numbers(values: Sequence[int | str], known: range) -> frozenset[int]:
    """The numbers a field stands for; 7 as a weekday is Sunday."""
    if "*" in values:
        return frozenset(known)
    return frozenset(int(value) % 7 if known == range(7) else int(value) for value in values)
