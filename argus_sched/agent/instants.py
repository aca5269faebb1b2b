"""Instants and lengths as text: for machines, and for people."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from argus_sched.agent.config.durations import format_duration


def rfc3339(instant: datetime) -> str:
    """`2026-03-14T10:00:00Z`, with a fraction only where there is one."""
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def parse_rfc3339(text: str) -> datetime:
    """The instant that `rfc3339` or a person wrote; raises ValueError when it has no offset."""
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        raise ValueError(f"{text!r} has no offset: write for example 2026-03-14T10:00:00Z")
    return instant.astimezone(UTC)


def clock_text(instant: datetime) -> str:
    """`2026-03-14 10:00:00Z`, for people: whole seconds."""
    return f"{instant.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"


def about(length: timedelta) -> str:
    """`length` for people, in its two largest units: `47m12s`, `26h`, `9d2h`."""
    seconds = max(0, int(length.total_seconds()))
    if seconds >= 2 * 86400:
        days, hours = divmod(seconds // 3600, 24)
        return f"{days}d{hours}h" if hours else f"{days}d"
    unit = 3600 if seconds >= 86400 else 60 if seconds >= 3600 else 1
    return format_duration(timedelta(seconds=seconds // unit * unit))
