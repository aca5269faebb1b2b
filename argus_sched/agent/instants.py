"""Instants as text: for machines, and for people."""

from __future__ import annotations

from datetime import UTC, datetime


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
