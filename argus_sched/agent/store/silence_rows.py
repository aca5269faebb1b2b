"""Silences as rows; the table by incident_rows.MIGRATIONS."""

from __future__ import annotations

import sqlite3
from datetime import datetime
from typing import Any

from argus_sched.agent.store.row_values import instant, stamp, storable
from argus_sched.agent.telling.silences import Silence


def add_silence(connection: sqlite3.Connection, silence: Silence, at: datetime) -> int:
    """Keep `silence`, made at `at`; returns its number."""
    cursor = connection.execute(
        "INSERT INTO silences (match, until, reason, made_by, made_at) VALUES (?, ?, ?, ?, ?)",
        (
            storable(silence.match),
            stamp(silence.until),
            storable(silence.reason),
            storable(silence.by),
            stamp(at),
        ),
    )
    return int(cursor.lastrowid or 0)


def active_silences(connection: sqlite3.Connection, at: datetime) -> tuple[Silence, ...]:
    """The silences that hold at `at`, the next to end first."""
    rows = connection.execute(
        """SELECT match, until, reason, made_by, made_at, number FROM silences
        WHERE until > ? AND ended_at IS NULL ORDER BY until, number""",
        (stamp(at),),
    )
    return tuple(_silence(row) for row in rows)


def end_silences(connection: sqlite3.Connection, which: str, at: datetime) -> tuple[Silence, ...]:
    """End the active silences with this number or this very pattern; returns them."""
    ended = [found for found in active_silences(connection, at) if which in {str(found.number), found.match}]
    connection.executemany(
        "UPDATE silences SET ended_at = ? WHERE number = ?", [(stamp(at), found.number) for found in ended]
    )
    return tuple(ended)


def _silence(row: Any) -> Silence:
    match, until, reason, made_by, made_at, number = row
    return Silence(match, instant(until), reason, made_by, instant(made_at), number)
