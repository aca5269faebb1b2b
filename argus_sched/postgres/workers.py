"""A worker's row, its heartbeat, and the lock that is free once it died."""

from __future__ import annotations

import os
import socket
from datetime import UTC, datetime

from argus_sched.advisory_keys import derived_key
from argus_sched.postgres.link import Connection, Link
from argus_sched.scheduling.claims import Beat

_REGISTER = """
INSERT INTO argus_sched.worker (instance, namespace, host, pid, lock_key, schedule_hash)
VALUES (%(worker)s, %(namespace)s, %(host)s, %(pid)s, %(key)s, %(hash)s)
ON CONFLICT (instance) DO UPDATE SET heartbeat_at = clock_timestamp(), schedule_hash = excluded.schedule_hash
"""

_BEAT = """
WITH asked AS (SELECT resign_for FROM argus_sched.worker WHERE instance = %(worker)s)
UPDATE argus_sched.worker SET heartbeat_at = clock_timestamp(), resign_for = NULL WHERE instance = %(worker)s
RETURNING clock_timestamp(), (SELECT resign_for FROM asked), EXISTS (
    SELECT FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory' AND granted)
"""

_OTHER_SETS = """
SELECT DISTINCT schedule_hash, host, pid FROM argus_sched.worker
WHERE namespace = %s AND instance <> %s AND schedule_hash <> %s AND stopped_at IS NULL
    AND heartbeat_at > now() - interval '150 seconds'
"""


class PostgresWorker:
    """This process among the workers of a namespace.

    Its lock lives on the session that beats. While it is active (it leads, or runs jobs) the server ends that
    session after `silence` seconds without a beat, so that a frozen process counts as dead in the end.
    """

    def __init__(self, namespace: str, worker: str, silence: float) -> None:
        self._namespace = namespace
        self._worker = worker
        self._key = derived_key("runs", worker)
        self._silence = silence
        self._active = False
        self._hash = ""

    def on_open(self, connection: Connection) -> None:
        """Prepare a new session: take the lock, unless a lingering former session holds it still."""
        self._hold(connection)
        self._apply(connection)

    def register(self, link: Link, schedule_hash: str) -> None:
        """Write this worker's row."""
        self._hash = schedule_hash
        parameters = {
            "worker": self._worker,
            "namespace": self._namespace,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "key": self._key,
            "hash": schedule_hash,
        }
        link.rows(_REGISTER, parameters)

    def other_sets(self, link: Link) -> list[tuple[str, str, int]]:
        """(hash, host, pid) of living workers of this namespace whose set of jobs is another."""
        return [
            (str(found), str(host), int(pid))
            for found, host, pid in link.rows(_OTHER_SETS, (self._namespace, self._worker, self._hash))
        ]

    def beat(self, link: Link, active: bool) -> Beat:
        """Renew the heartbeat, take the lock again if it went, and hear whether to resign."""
        with link.connection() as connection:
            if active != self._active:
                self._active = active
                self._apply(connection)
            before = datetime.now(UTC)
            row = connection.execute(_BEAT, {"worker": self._worker}).fetchone()
            after = datetime.now(UTC)
            if row is None:
                self.register(link, self._hash)
                return Beat()
            now, asked, held = row
            if not held:
                self._hold(connection)
        middle = before + (after - before) / 2
        return Beat((now - middle).total_seconds(), asked)

    def leave(self, link: Link) -> None:
        """Say that this worker stopped, and free its lock."""
        stopped = "UPDATE argus_sched.worker SET stopped_at = clock_timestamp() WHERE instance = %s"
        try:
            link.rows(stopped, (self._worker,))
        finally:
            link.close()

    def _hold(self, connection: Connection) -> None:
        connection.execute("SELECT pg_try_advisory_lock(%s)", (self._key,))

    def _apply(self, connection: Connection) -> None:
        # PostgreSQL 13 has no idle_session_timeout; there the heartbeat and TCP's own timeouts must do.
        if connection.info.server_version >= 140000:
            limit = f"{self._silence:g}s" if self._active else "0"
            connection.execute("SELECT set_config('idle_session_timeout', %s, false)", (limit,))
