"""What the harness asks the database itself, over a direct connection of its own.

It shares no statement with the scheduler or the agent: a mistake they made would be made here again, and the
judge would believe it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

_HOLDERS = """
SELECT pid FROM pg_locks
WHERE locktype = 'advisory' AND granted AND mode = 'ExclusiveLock' AND objsubid = 1
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND classid::bigint = (%(key)s::bigint >> 32) & 4294967295
  AND objid::bigint = %(key)s::bigint & 4294967295
ORDER BY pid
"""
_SEAT = "SELECT pid, application_name, client_port FROM pg_stat_activity WHERE pid = %s"
_LEDGER = """
SELECT extract(epoch FROM r.claimed_at)::float8, r.worker::text, r.job_id,
       round(extract(epoch FROM r.due) * 1000)::bigint, r.outcome, r.attempt,
       extract(epoch FROM r.finished_at)::float8
FROM argus_sched.run r JOIN unnest(%s::text[], %s::bigint[]) AS f (job, due_ms)
  ON r.job_id = f.job AND r.due = to_timestamp(f.due_ms / 1000.0)
WHERE r.namespace = %s AND r.origin = 'schedule' ORDER BY r.claimed_at
"""
OPEN = ("running", "given_back")


@dataclass(frozen=True)
class LedgerRow:
    """One row of the scheduler's ledger; instants in seconds, `due_ms` in milliseconds, since 1970."""

    claimed_at: float
    instance: str
    job: str
    due_ms: int
    outcome: str
    attempt: int
    ended_at: float | None


@dataclass(frozen=True)
class Seat:
    """One session: its server process, its name, its client's port (-1 or None for a Unix socket)."""

    pid: int
    name: str
    client_port: int | None


class Witness:
    """A connection that is opened anew after the database was away; what cannot be asked is None."""

    def __init__(self, dsn: str, key: int, connect_timeout: int = 2) -> None:
        self._dsn = dsn
        self._key = key
        self._timeout = connect_timeout
        self._connection: psycopg.Connection[Any] | None = None

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of the DSN."""
        return address_of(self._dsn)

    @property
    def login(self) -> tuple[str, str]:
        """User and password of the DSN."""
        parts = conninfo_to_dict(self._dsn)
        return str(parts.get("user") or "postgres"), str(parts.get("password") or "")

    def holders(self) -> tuple[int, ...] | None:
        """The sessions of this database that hold the exact key; None when it could not be asked."""
        rows = self._ask(_HOLDERS, {"key": self._key})
        return None if rows is None else tuple(row[0] for row in rows)

    def seat(self, pid: int) -> Seat | None:
        """The session of one server process, if it is still there."""
        rows = self._ask(_SEAT, (pid,))
        return Seat(*rows[0]) if rows else None

    def terminate(self, pid: int) -> bool:
        """pg_terminate_backend; True when the session was there."""
        rows = self._ask("SELECT pg_terminate_backend(%s)", (pid,))
        return bool(rows and rows[0][0])

    def ready(self) -> bool:
        """Whether the database answers."""
        return self._ask("SELECT 1", ()) is not None

    def ledger(self, namespace: str, fires: Collection[tuple[str, int]]) -> list[LedgerRow]:
        """What is on record of some fires, each a job and its due time in milliseconds."""
        jobs, dues = [job for job, _ in fires], [due for _, due in fires]
        return [LedgerRow(*row) for row in self._ask(_LEDGER, (jobs, dues, namespace)) or ()]

    def close(self) -> None:
        """Give the connection back."""
        if self._connection is not None:
            with contextlib.suppress(psycopg.Error):
                self._connection.close()
        self._connection = None

    def _ask(self, statement: str, values: Any) -> list[tuple[Any, ...]] | None:
        try:
            if self._connection is None or self._connection.closed:
                self._connection = psycopg.connect(
                    self._dsn,
                    autocommit=True,
                    connect_timeout=self._timeout,
                    application_name="argus-witness",
                )
            return self._connection.execute(statement, values).fetchall()
        except psycopg.Error:
            self.close()
            return None


def address_of(dsn: str) -> tuple[str, int]:
    """Host and port of a DSN."""
    parts = conninfo_to_dict(dsn)
    return str(parts.get("host") or "127.0.0.1"), int(parts.get("port") or 5432)


def through(dsn: str, port: int, host: str = "127.0.0.1") -> str:
    """`dsn` by way of another port and host."""
    return make_conninfo(dsn, host=host, port=port)
