"""One look at an advisory lock through pg_locks: who holds the exact key in this database, and who waits."""

from __future__ import annotations

import contextlib
import math
import os
import re
import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from argus_sched.advisory_keys import halves
from argus_sched.agent.ports import LockRow, LockSample
from argus_sched.errors import HostError, SourceError

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[Any]
    Row = tuple[Any, ...]

APPLICATION_NAME = "argus-sched-check"
WAITSTART_SINCE = 140_000

# One message, one short transaction: nothing outlives it on the session, so a transaction pooler between
# the agent and the server does no harm. For its sake, too, the timeouts are not options at startup, which
# poolers refuse.
_LOOK = """
BEGIN READ ONLY;
SET LOCAL statement_timeout = {timeout};
SET LOCAL lock_timeout = {timeout};
SELECT pg_is_in_recovery(), extract(epoch FROM clock_timestamp())::float8, current_user,
       concat_ws('/', extract(epoch FROM pg_postmaster_start_time()), current_database());
SELECT coalesce(l.pid, 0), l.mode, l.granted, a.state, a.application_name, host(a.client_addr),
       extract(epoch FROM clock_timestamp() - a.state_change)::float8,
       extract(epoch FROM clock_timestamp() - a.xact_start)::float8,
       CASE WHEN NOT l.granted
            THEN extract(epoch FROM clock_timestamp() - coalesce({waitstart}, a.query_start))::float8 END
FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory'
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND l.classid = '{classid}'::oid AND l.objid = '{objid}'::oid AND l.objsubid = 1
  -- a process that ended between the two views holds nothing any more; a prepared transaction has no process
  AND (a.pid IS NOT NULL OR l.pid IS NULL)
ORDER BY l.granted DESC, l.mode, l.pid;
COMMIT
"""

# What libpq and psycopg put before the cause itself; the caller has named the server already.
_WRAPPING = re.compile(
    r"^(?:connection (?:failed|is bad): )?(?:connection to server .*? failed: )?(?:FATAL|ERROR)?:? *"
)

_RESTARTING = "starting up|shutting down|recovery mode"
_ADVICE = (
    ("password authentication failed", "check the password in the DSN"),
    ("no password supplied", "the DSN carries no password"),
    ("no pg_hba.conf entry", "the server does not admit this host and user: see its pg_hba.conf"),
    (r'role ".*" does not exist', "check the user in the DSN"),
    (r'database ".*" does not exist', "check the database's name in the DSN"),
    ("too many clients|too many connections|remaining connection slots", "the server has no free connection"),
    (_RESTARTING, "the server is restarting"),
    ("Connection refused", "is the server running, and is the port right?"),
    ("No such file or directory", "is the server running on this machine?"),
    ("failed to resolve host", "check the host's name in the DSN"),
    ("timeout expired|timed out", "the host does not answer"),
)


class PostgresLockView:
    """The lock as one database shows it, over one connection that stays open between looks.

    Implements `LockView`. Every failure is a SourceError, one sentence that names the host and never holds
    the password. `timeout` bounds connecting and each look, in seconds.
    """

    def __init__(self, dsn: str, timeout: float) -> None:
        self._dsn = dsn
        self._timeout = timeout
        self._connection: Connection | None = None
        self._system_identifier: str | None = None

    def sample(self, key: int) -> LockSample:
        """One look at `key`; raises SourceError."""
        if self._connection is not None:
            # The server may have been restarted since the last look: that is not news, so try afresh.
            with contextlib.suppress(SourceError):
                return self._look(self._connection, key)
        return self._look(self._connect(), key)

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connect(self) -> Connection:
        import psycopg

        server, name = _place(self._dsn)
        try:
            self._connection = psycopg.connect(
                self._dsn,
                autocommit=True,
                prepare_threshold=None,
                connect_timeout=max(2, math.ceil(self._timeout)),
                application_name=APPLICATION_NAME,
                client_encoding="UTF8",
            )
        except psycopg.Error as error:
            said = _sentence(error)
            if _is_away(error):
                # Without the name: what keeps one database of a server from us keeps all of them.
                raise HostError(f"cannot connect to the database at {server}: {said}") from error
            raise SourceError(f"cannot connect to the database at {server}/{name}: {said}") from error
        except Exception as error:  # a fault of the driver, whose traceback would show the password
            cause = f"{type(error).__name__} in psycopg"
            raise SourceError(f"cannot connect to the database at {server}/{name}: {cause}") from None
        self._system_identifier = self._identify(self._connection)
        return self._connection

    def _identify(self, connection: Connection) -> str | None:
        """The cluster's system identifier, the same on its standbys; None without the right to read it."""
        import psycopg

        try:
            with _cut_after(connection, self._timeout):
                row = connection.execute("SELECT system_identifier::text FROM pg_control_system()").fetchone()
        except psycopg.Error:
            return None
        return row[0] if row else None

    def _look(self, connection: Connection, key: int) -> LockSample:
        import psycopg

        server = f"{connection.info.host}:{connection.info.port}"
        cut = None
        try:
            # One second for the server to cancel the statement itself, which leaves the better message.
            with _cut_after(connection, self._timeout + 1) as cut:
                facts, rows = _ask(connection, key, self._timeout)
        except psycopg.Error as error:
            self.close()
            cause = f"no answer within {self._timeout:g} s" if cut and cut.is_set() else _sentence(error)
            raise SourceError(f"cannot read the lock at {server}: {cause}") from error
        in_recovery, epoch, role, identity = facts
        return LockSample(
            rows=tuple(LockRow(*row) for row in rows),
            in_recovery=in_recovery,
            server_time=datetime.fromtimestamp(epoch, UTC),
            server=server,
            system_identifier=self._system_identifier,
            role=role,
            identity=identity,
        )


def _ask(connection: Connection, key: int, timeout: float) -> tuple[Row, list[Row]]:
    classid, objid = halves(key)
    waitstart = "l.waitstart" if connection.info.server_version >= WAITSTART_SINCE else "NULL"
    statement = _LOOK.format(
        timeout=math.ceil(timeout * 1000), classid=classid, objid=objid, waitstart=waitstart
    )
    # Not parameters: only a statement without any may hold several commands.
    cursor = connection.execute(statement.encode())
    answers = [found.fetchall() for found in cursor.results() if found.description]
    return answers[0][0], answers[1]


@contextlib.contextmanager
def _cut_after(connection: Connection, seconds: float) -> Iterator[threading.Event]:
    """End the connection under a statement that outlasts `seconds`; the event says that it did.

    The server's own timeout does not help against a server that is frozen or cut off.
    """
    cut = threading.Event()

    def end() -> None:
        cut.set()
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as line:
            line.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield cut
    finally:
        timer.cancel()
        # An `end` that has begun must not outlive the connection, whose descriptor may be given to another.
        timer.join()


def _is_away(error: psycopg.Error) -> bool:
    """Whether no server answered, or only one that admits nobody yet."""
    return "FATAL:" not in str(error) or re.search(_RESTARTING, str(error)) is not None


def _place(dsn: str) -> tuple[str, str]:
    """host:port and database of `dsn`; raises SourceError where they cannot be told from the password."""
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        parts = conninfo_to_dict(dsn)
    except ProgrammingError:
        parts = None
    port = str(parts.get("port") or "5432") if parts is not None else ""
    if parts is None or _is_ambiguous(dsn) or not re.fullmatch(r"[0-9,]+", port):
        # libpq's own message would quote the text, password included.
        raise SourceError(
            "the database DSN cannot be read: expected postgresql://USER:PASSWORD@HOST:PORT/NAME, special "
            "characters of the password percent-encoded (@ is %40, / is %2F), or key=value pairs"
        ) from None
    name = parts.get("dbname") or parts.get("user") or ""
    return f"{parts.get('host') or 'the default host'}:{port}", str(name)


def _is_ambiguous(dsn: str) -> bool:
    """True for a URL whose password seems to hold a bare @ or /, and so spills into host or name."""
    _, scheme, rest = dsn.partition("://")
    before, *after = rest.split("?")[0].split("@")
    return bool(scheme) and (len(after) > 1 or (bool(after) and "/" in before))


def _sentence(error: psycopg.Error) -> str:
    """The server's or the driver's own words on one line, and what to do where that is known."""
    first = (error.diag.message_primary or str(error) or type(error).__name__).strip().splitlines()[0]
    words = _WRAPPING.sub("", first)
    advice = next((text for pattern, text in _ADVICE if re.search(pattern, words)), "")
    return f"{words} ({advice})" if advice else words
