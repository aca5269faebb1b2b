"""Jobs as a log shows them, and what their triggers probably are."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median

from argus_sched import due_times
from argus_sched.agent.config.durations import format_duration
from argus_sched.agent.discovery.trigger_text import PackTrigger, every, read_trigger
from argus_sched.agent.logevents import Event, EventKind

# What a median needs to mean something; older runs say little about the trigger of today.
FEWEST_GAPS = 2
MOST_RUNS = 500
TOLERANCE = 0.02
UNITS = (timedelta(days=1), timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1))


@dataclass
class Sighting:
    """One job name in a log: its newest trigger text, and the due times of its newest runs."""

    name: str
    trigger: str = ""
    runs: int = 0
    _dues: deque[datetime] = field(default_factory=lambda: deque(maxlen=MOST_RUNS))

    def add(self, event: Event) -> None:
        """Note one run."""
        self.runs += 1
        self.trigger = event.trigger or self.trigger
        self._dues.append(event.scheduled_at_utc or _instant(event.stamp_ns))

    @property
    def dues(self) -> list[datetime]:
        """The due times, to the second and each once, however many workers ran it."""
        return sorted({due.replace(microsecond=0) for due in self._dues})


@dataclass(frozen=True)
class Guess:
    """What a job's trigger probably is; `missing` says what is lacking to be sure, `note` what looks odd."""

    trigger: PackTrigger | None
    missing: str = ""
    note: str = ""


class Sightings:
    """All jobs of one log, in the order they were first seen."""

    def __init__(self) -> None:
        self._by_name: dict[str, Sighting] = {}

    def add(self, events: Iterable[Event]) -> None:
        """Note every run among `events`, and every job that was added, whether or not it runs."""
        for event in events:
            if event.name and event.kind in (EventKind.RUNNING, EventKind.ADDED):
                sighting = self._by_name.setdefault(event.name, Sighting(event.name))
                if event.kind is EventKind.RUNNING:
                    sighting.add(event)

    def jobs(self) -> list[Sighting]:
        """What was noted of each job."""
        return list(self._by_name.values())


def guess(sighting: Sighting, timezone: str) -> Guess:
    """What the trigger of one job probably is; cron fields are taken to be in `timezone`.

    What the log says of the trigger counts where the runs agree, else the median gap, of which there must be
    more than one.
    """
    told, dues = read_trigger(sighting.trigger, timezone), sighting.dues
    if len(dues) < 2:
        return Guess(told, missing="seen once" if dues else "added, and not seen to run")
    if told and isinstance(told.rule, due_times.Cron):
        agreed = all(told.rule.latest_at_or_before(due) == due for due in dues)
        return Guess(told, missing="" if agreed else f"its runs do not fit these times in {timezone}")
    gap = typical_gap(dues)
    if told and isinstance(told.rule, due_times.Every):
        return _settle(told, told.rule.interval, gap)
    return Guess(every(gap), missing="" if len(dues) > FEWEST_GAPS else "seen twice")


def typical_gap(dues: Sequence[datetime]) -> timedelta:
    """The median gap between `dues`, as a whole number of the largest unit that is within two per cent."""
    gap = timedelta(seconds=median((later - earlier).total_seconds() for earlier, later in pairwise(dues)))
    for unit in UNITS:
        rounded = round(gap / unit) * unit
        if rounded and abs(rounded - gap) <= gap * TOLERANCE:
            return rounded
    return max(round(gap / UNITS[-1]), 1) * UNITS[-1]


def _settle(told: PackTrigger, interval: timedelta, gap: timedelta) -> Guess:
    """The interval that the log names, unless its runs are farther apart: a job often skipped is not dead."""
    if abs(interval - gap) <= interval * TOLERANCE:
        return Guess(told)
    note = f"its trigger says {format_duration(interval)}, its runs are {format_duration(gap)} apart"
    return Guess(every(gap) if gap > interval else told, note=note)


def _instant(stamp_ns: int) -> datetime:
    return due_times.EPOCH + timedelta(microseconds=stamp_ns // 1000)
