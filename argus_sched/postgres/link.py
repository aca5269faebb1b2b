"""A connection that opens itself when it is needed, and again after it broke.

A dead connection never shows in psycopg's attributes, so the socket is looked at before each use: what the
server said since (that it shuts down, that it ended this session) is found before anything is sent, and only
a break under way leaves an outcome unknown.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import psycopg
from psycopg import errors
from psycopg.conninfo import make_conninfo
from psycopg.rows import TupleRow

from argus_sched.errors import ClaimStoreError, SchedulerError, SchemaError
from argus_sched.postgres.connection import read_dsn
from argus_sched.postgres.preflight import pooled
from argus_sched.scheduling.claims import OutcomeUnknownError

Connection = psycopg.Connection[TupleRow]
Row = tuple[Any, ...]

# A peer that went without a word is given up after about three seconds, not after the kernel's hours.
_IMPATIENT = {"keepalives_idle": 2, "keepalives_interval": 1, "keepalives_count": 2, "tcp_user_timeout": 3000}

_links: weakref.WeakSet[Link] = weakref.WeakSet()


class Link:
    """One autocommit connection for one purpose; calls of several threads take turns.

    `on_open` prepares each new connection. Errors: ClaimStoreError when the server cannot be reached or
    refused the statement (nothing was done), OutcomeUnknownError when the connection broke under way,
    SchemaError when tables or rights are missing.
    """

    def __init__(
        self,
        dsn: str,
        name: str,
        settings: Mapping[str, str],
        on_open: Callable[[Connection], None] | None = None,
    ) -> None:
        self._conninfo = conninfo(dsn, **_IMPATIENT)
        self._name = name
        self._settings = settings
        self._on_open = on_open
        self._connection: Connection | None = None
        self._turn = threading.RLock()
        _links.add(self)

    def rows(self, query: str, parameters: Mapping[str, Any] | Sequence[Any] = ()) -> list[Row]:
        """Run one statement and return its rows, an empty list for one that returns none."""
        with self.connection() as connection:
            cursor = connection.execute(query.encode(), parameters)
            return cursor.fetchall() if cursor.description else []

    @contextlib.contextmanager
    def connection(self, transaction: bool = False) -> Iterator[Connection]:
        """The connection for a few statements, in one transaction if asked for."""
        with self._turn:
            connection = self._opened()
            try:
                with connection.transaction() if transaction else contextlib.nullcontext():
                    yield connection
            except psycopg.Error as error:
                raise self._mapped(connection, error) from error

    def close(self) -> None:
        """Close the connection; the next use opens another."""
        with self._turn:
            self._drop()

    def _opened(self) -> Connection:
        if self._connection is not None and not _speaks_up(self._connection):
            return self._connection
        self._drop()
        try:
            self._connection = psycopg.connect(self._conninfo, autocommit=True, application_name=self._name)
            self._prepare(self._connection)
        except psycopg.Error as error:
            self._drop()
            raise ClaimStoreError(f"the database cannot be reached: {_one_line(error)}") from error
        except ClaimStoreError:
            self._drop()
            raise
        return self._connection

    def _prepare(self, connection: Connection) -> None:
        # Before anything is set: behind a pooler the settings and the lock would be its next user's.
        if pooler := behind_pooler(connection):
            raise ClaimStoreError(pooler)
        for setting, value in self._settings.items():
            connection.execute("SELECT set_config(%s, %s, false)", (setting, value))
        if self._on_open:
            self._on_open(connection)

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _mapped(self, connection: Connection, error: psycopg.Error) -> SchedulerError:
        text = _one_line(error)
        if connection.closed or isinstance(error, errors.AdminShutdown | errors.CrashShutdown):
            self._drop()
            return OutcomeUnknownError(f"the connection to the database broke: {text}")
        if isinstance(error, errors.UndefinedTable | errors.UndefinedColumn | errors.InvalidSchemaName):
            return SchemaError(
                f"a table of argus-sched is missing ({text}): run  argus-sched scheduler migrate"
            )
        if isinstance(error, errors.InsufficientPrivilege):
            return SchemaError(
                f"this role may not use the tables of argus-sched ({text}): GRANT USAGE ON SCHEMA "
                "argus_sched, and SELECT, INSERT, UPDATE, DELETE on its tables"
            )
        return ClaimStoreError(f"the database refused a statement: {text}")

    def forget_in_child(self) -> None:
        """After a fork: let go of the parent's session without ending it."""
        self._turn = threading.RLock()
        if self._connection is not None:
            # A copy of the socket would keep the session, and its lock, alive after the parent died.
            with contextlib.suppress(OSError, psycopg.Error):
                null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
                os.dup2(null, self._connection.fileno(), inheritable=False)
                os.close(null)
        self._connection = None


def conninfo(dsn: str, **parameters: int) -> str:
    """A libpq connection string of `dsn` (SQLAlchemy's form too), with a bounded wait, and `parameters`."""
    return make_conninfo("", **{"connect_timeout": 5, **read_dsn(dsn), **parameters})


def behind_pooler(connection: Connection) -> str:
    """Why this connection is refused, where another server process answers than was announced; else empty."""
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    info = connection.info
    return "" if row == (info.backend_pid,) else pooled(f"{info.host}:{info.port}/{info.dbname}")


def _speaks_up(connection: Connection) -> bool:
    """True when the server sent something unasked: a farewell, or the end of the stream."""
    if connection.closed:
        return True
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN | select.POLLRDHUP | select.POLLERR | select.POLLHUP)
    return bool(poll.poll(0))


def _forget_all() -> None:
    for link in list(_links):
        link.forget_in_child()


os.register_at_fork(after_in_child=_forget_all)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
