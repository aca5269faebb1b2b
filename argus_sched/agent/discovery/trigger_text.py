"""APScheduler's words for a trigger, as its log prints them, in the words of a pack."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

from argus_sched import due_times
from argus_sched.agent.config.durations import format_duration
from argus_sched.errors import JobError

_INTERVAL = re.compile(r"interval\[(?:([0-9]{1,6}) days?, )?([0-9]+):([0-9]{2}):([0-9]{2}(?:\.[0-9]+)?)\]")
_CRON = re.compile(r"cron\[(.*)\]", re.DOTALL)
_CRON_FIELD = re.compile(r"([a-z_]+)='([^']*)'")
# APScheduler's order. A field that is not given is `*` before the last one given, and its minimum after it.
_MINIMUM = {
    "year": "*",
    "month": "1",
    "day": "1",
    "week": "*",
    "day_of_week": "*",
    "hour": "0",
    "minute": "0",
    "second": "0",
}
_ORDER = tuple(_MINIMUM)
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


@dataclass(frozen=True)
class PackTrigger:
    """A trigger that a pack can say: the rule, and the line of YAML for it."""

    rule: due_times.Every | due_times.Cron
    written: str


def every(interval: timedelta) -> PackTrigger:
    """The trigger `every: …`."""
    return PackTrigger(due_times.Every(interval), f"every: {format_duration(interval)}")


def read_trigger(text: str, timezone: str) -> PackTrigger | None:
    """What `text` says, for example `interval[0:15:00]` or `cron[hour='6', minute='0']` in `timezone`.

    None when a pack cannot say it: seconds, weeks and years of a cron trigger, `date`, `and`, `or`.
    """
    interval = _INTERVAL.fullmatch(text)
    if interval:
        days, hours, minutes, seconds = (float(part or 0) for part in interval.groups())
        length = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        return every(length) if length else None
    cron = _CRON.fullmatch(text)
    expression = _expression(dict(_CRON_FIELD.findall(cron[1]))) if cron else None
    return _cron(expression, timezone) if expression else None


def _cron(expression: str, timezone: str) -> PackTrigger | None:
    zone = "" if timezone == "UTC" else f", timezone: {timezone}"
    try:
        return PackTrigger(due_times.cron(expression, timezone), f'cron: "{expression}"{zone}')
    except JobError:
        return None


def _expression(given: dict[str, str]) -> str | None:
    """Five fields, None when cron cannot say it."""
    if not given or not given.keys() <= _MINIMUM.keys():
        return None
    last = max(map(_ORDER.index, given))
    fields = {
        name: given.get(name, "*" if place < last else _MINIMUM[name]) for place, name in enumerate(_ORDER)
    }
    if (fields["year"], fields["week"], fields["second"]) != ("*", "*", "0"):
        return None
    if "*" not in (fields["day"], fields["day_of_week"]):
        return None  # APScheduler wants both to match, cron either
    weekday = re.sub(r"[0-6]", lambda number: _WEEKDAYS[int(number[0])], fields["day_of_week"])
    return f"{fields['minute']} {fields['hour']} {fields['day']} {fields['month']} {weekday}"
