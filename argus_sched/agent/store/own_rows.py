"""What the agent counts of itself, as rows; table by incident_rows.MIGRATIONS."""

from __future__ import annotations

import sqlite3

INCOMPLETE, GAPS = "incomplete_passes", "gaps"


def count_up(connection: sqlite3.Connection, name: str) -> None:
    """One more of `name`."""
    connection.execute(
        "INSERT INTO own_counts VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET count = count + 1", (name,)
    )


def load_counts(connection: sqlite3.Connection) -> dict[str, int]:
    """The counts by name; what never happened is not in it."""
    return dict(connection.execute("SELECT name, count FROM own_counts"))
