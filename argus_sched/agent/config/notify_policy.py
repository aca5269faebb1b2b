"""When people are told, and when not: thresholds, reminders, flapping, maintenance windows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from argus_sched import due_times
from argus_sched.agent.config.fields import duration, one_line, text, timezone, whole_between
from argus_sched.agent.config.sections import Section

REMINDERS = (timedelta(hours=1), timedelta(hours=4), timedelta(hours=24))


@dataclass(frozen=True)
class FlappingSettings:
    """A target flaps above `high` per cent of changes in its last passes, until below `low` (Icinga's)."""

    low: int = 25
    high: int = 30


@dataclass(frozen=True)
class NotifySettings:
    """How many passes in a row open and resolve an incident, and when an open one is told again.

    `reminders` are the waits before the first, second, … reminder; the last one repeats; empty means none.
    """

    fire_after: int = 1
    resolve_after: int = 1
    reminders: tuple[timedelta, ...] = REMINDERS
    flapping: FlappingSettings = FlappingSettings()


@dataclass(frozen=True)
class MaintenanceWindow:
    """Targets that match the shell pattern `match` are not told for `length` after each due time."""

    match: str
    trigger: due_times.Trigger
    length: timedelta
    reason: str

    def covers(self, now: datetime) -> bool:
        """Whether `now` lies in a window; its end is outside."""
        begin = self.trigger.latest_at_or_before(now)
        return begin is not None and now < begin + self.length


def read_notify(section: Section) -> NotifySettings:
    """The section `notify`."""
    passes = whole_between(1, 1000)
    flapping = section.sub("flapping")
    settings = NotifySettings(
        fire_after=section.get("fire_after", passes, 1),
        resolve_after=section.get("resolve_after", passes, 1),
        reminders=section.each("reminders", duration, REMINDERS),
        flapping=_flapping(flapping) if flapping else FlappingSettings(),
    )
    section.finish()
    return settings


def read_maintenance(section: Section, zone: str) -> MaintenanceWindow | None:
    """One entry of `maintenance`; None after a problem."""
    zone = section.get("timezone", timezone, zone)
    trigger = section.need("cron", lambda value: due_times.cron(text(value), zone), None)
    match = section.get("match", one_line, "*")
    length = section.need("for", duration, None)
    reason = section.need("reason", text, "")
    section.finish()
    return MaintenanceWindow(match, trigger, length, reason) if trigger and length else None


def _flapping(section: Section) -> FlappingSettings:
    percent = whole_between(1, 100)
    settings = FlappingSettings(
        low=section.get("low", percent, 25),
        high=section.get("high", percent, 30),
    )
    if settings.low > settings.high:
        section.add("low", f"must not be above high ({settings.high}), got {settings.low}")
    section.finish()
    return settings
