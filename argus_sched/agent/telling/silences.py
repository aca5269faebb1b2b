"""What keeps a wrong target from being told: silences a person made, maintenance windows of the settings.

Both match by `fnmatch` on the whole target (`labs/*`), have an end and a reason, and hide only messages:
what they cover is graded, recorded and counted as ever, and told when they end while it is still wrong.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase

from argus_sched.agent.config.durations import format_duration
from argus_sched.agent.config.notify_policy import MaintenanceWindow
from argus_sched.errors import SettingsError

LONGEST_SILENCE = timedelta(days=366)


@dataclass(frozen=True)
class Silence:
    """Targets that match are not told of until `until`; `number` is its row, 0 before it has one."""

    match: str
    until: datetime
    reason: str
    by: str = ""
    made_at: datetime | None = None
    number: int = 0

    def covers(self, subject: str, at: datetime) -> bool:
        """Whether `subject` is silenced at `at`; the end itself is outside."""
        return at < self.until and matches(self.match, subject)


def matches(pattern: str, subject: str) -> bool:
    """Whether `pattern` means `subject`: the very same text (names hold brackets too), or by `fnmatch`."""
    return pattern == subject or fnmatchcase(subject, pattern)


def muting(
    subject: str, at: datetime, silences: Iterable[Silence], windows: Iterable[MaintenanceWindow] = ()
) -> str | None:
    """The silence or window that keeps `subject` from being told at `at`, in words; None when it is told."""
    for silence in silences:
        if silence.covers(subject, at):
            return f"silence {silence.number}: {silence.reason}"
    for window in windows:
        if matches(window.match, subject) and window.covers(at):
            return f"maintenance: {window.reason}"
    return None


def new_silence(match: str, length: timedelta, reason: str, at: datetime, by: str = "") -> Silence:
    """A silence from `at` on; refuses one without a pattern, a reason or an end within a year."""
    if not match.strip():
        raise SettingsError("a silence needs a pattern: give a target such as labs/nightly, or labs/*")
    if not reason.strip():
        raise SettingsError("a silence needs a reason: give --reason with a few words for the next person")
    if not timedelta(0) < length <= LONGEST_SILENCE:
        raise SettingsError(
            f"a silence must end within {LONGEST_SILENCE.days} days, not after {format_duration(length)}"
        )
    return Silence(match, at + length, reason.strip(), by, at)
