"""Values as SQLite keeps them: instants as ISO 8601 in UTC, which sort as text; text that UTF-8 can hold."""

from __future__ import annotations

from datetime import UTC, datetime


def stamp(instant: datetime) -> str:
    """`instant` with six digits of a second, in UTC."""
    return instant.astimezone(UTC).isoformat(timespec="microseconds")


def optional_stamp(instant: datetime | None) -> str | None:
    """The same, None for None."""
    return None if instant is None else stamp(instant)


def instant(text: str) -> datetime:
    """The instant `stamp` wrote."""
    return datetime.fromisoformat(text)


def optional_instant(text: str | None) -> datetime | None:
    """The same, None for None."""
    return None if text is None else instant(text)


def storable(text: str) -> str:
    """`text` with lone surrogates as escapes: SQLite takes only what UTF-8 can encode."""
    return text.encode(errors="backslashreplace").decode()
