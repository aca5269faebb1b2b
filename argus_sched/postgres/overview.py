"""What the scheduler's tables say, for people: leaders, jobs and runs; and a leader asked to resign."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import psycopg
from psycopg.rows import dict_row

from argus_sched.errors import SchedulerError
from argus_sched.postgres import schema
from argus_sched.postgres.link import conninfo

Row = dict[str, Any]

_LEADERS = """
SELECT l.namespace, l.epoch, l.host, l.pid, l.container, l.elected_at, l.lock_key, l.instance::text,
    h.pid IS NOT NULL AS holds
FROM argus_sched.leader l
LEFT JOIN pg_locks h ON h.locktype = 'advisory' AND h.granted AND h.mode = 'ExclusiveLock' AND h.objsubid = 1
    AND h.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND h.classid::bigint = (l.lock_key >> 32) & 4294967295
    AND h.objid::bigint = l.lock_key & 4294967295
WHERE %(namespace)s::text IS NULL OR l.namespace = %(namespace)s
ORDER BY l.namespace
"""

_JOBS = """
SELECT j.namespace, j.job_id, j.name, j.trigger, j.watermark, j.next_due, j.enabled, j.auto_disabled,
    j.disabled_by, j.disabled_reason, j.disabled_at, j.consecutive_failures, j.declared
FROM argus_sched.job j
WHERE %(namespace)s::text IS NULL OR j.namespace = %(namespace)s
ORDER BY j.namespace, j.job_id
"""

_RUNS = """
SELECT r.namespace, r.job_id, r.due, r.origin, r.outcome, r.attempt, r.missed, r.claimed_at, r.started_at,
    r.finished_at, r.error, r.epoch, coalesce(w.host || ':' || w.pid, r.worker::text) AS worker
FROM argus_sched.run r LEFT JOIN argus_sched.worker w ON w.instance = r.worker
WHERE (%(namespace)s::text IS NULL OR r.namespace = %(namespace)s)
    AND (%(job_id)s::text IS NULL OR r.job_id = %(job_id)s)
    AND (%(outcome)s::text IS NULL OR r.outcome = %(outcome)s)
ORDER BY r.claimed_at DESC, r.job_id LIMIT %(limit)s
"""

_RESIGN = """
UPDATE argus_sched.worker w SET resign_for = %(cooldown)s
FROM argus_sched.leader l
WHERE l.namespace = %(namespace)s AND w.instance = l.instance AND w.stopped_at IS NULL
    AND w.heartbeat_at > now() - interval '150 seconds'
RETURNING w.host, w.pid
"""


def migrate(dsn: str) -> list[str]:
    """Apply what is missing; the names of what was applied."""
    try:
        return schema.migrate(dsn)
    except psycopg.OperationalError as error:
        raise _unreachable(error) from error


def leaders(dsn: str, namespace: str | None = None) -> list[Row]:
    """One row for each namespace: who was elected last, and whether a session holds its lock now."""
    return _rows(dsn, _LEADERS, {"namespace": namespace})


def jobs(dsn: str, namespace: str | None = None) -> list[Row]:
    """The job rows, those no longer declared too."""
    return _rows(dsn, _JOBS, {"namespace": namespace})


def runs(
    dsn: str,
    namespace: str | None = None,
    job_id: str | None = None,
    outcome: str | None = None,
    limit: int = 20,
) -> list[Row]:
    """The latest runs, newest first."""
    parameters = {"namespace": namespace, "job_id": job_id, "outcome": outcome, "limit": limit}
    return _rows(dsn, _RUNS, parameters)


def resign(dsn: str, namespace: str, cooldown: float) -> Row:
    """Ask the leader, which hears it at its next beat, to let another lead for `cooldown` seconds."""
    found = _rows(dsn, _RESIGN, {"namespace": namespace, "cooldown": cooldown})
    if not found:
        raise SchedulerError(
            f"namespace {namespace!r} has no leader that can be asked here: see  argus-sched scheduler leader"
        )
    return found[0]


def _rows(dsn: str, query: str, parameters: dict[str, Any]) -> list[Row]:
    with _reading(dsn) as connection:
        cursor = connection.execute(query.encode(), parameters)
        return cursor.fetchall()


@contextlib.contextmanager
def _reading(dsn: str) -> Iterator[psycopg.Connection[Row]]:
    try:
        schema.check(dsn)
        with psycopg.connect(
            conninfo(dsn), autocommit=True, application_name="argus-cli", row_factory=dict_row
        ) as connection:
            yield connection
    except psycopg.Error as error:
        raise _unreachable(error) from error


def _unreachable(error: psycopg.Error) -> SchedulerError:
    return SchedulerError(f"the database cannot be asked: {' '.join(str(error).split())}")
