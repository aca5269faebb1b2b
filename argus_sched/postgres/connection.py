"""One dedicated session with the database: asked with a time limit, watched in between, never pooled.

psycopg opens it; after that libpq is driven directly, because three things are needed that no cursor
offers: a client-side limit on every answer (a frozen server process answers no `statement_timeout`), a
look at the socket between questions (a dead session is readable within a millisecond, while psycopg's
attributes never notice), and a wait that another thread can end.

A session belongs to the process that opened it. A fork inherits its socket, which would keep it alive
after its owner died: the child's copy is pointed at /dev/null at once, and nothing is ever sent from there.
"""

from __future__ import annotations

import contextlib
import enum
import math
import os
import re
import select
import socket
import struct
import time
import weakref
from collections.abc import Mapping
from typing import Protocol

import psycopg
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from argus_sched.errors import SchedulerError, SettingsError

Row = tuple[str | None, ...]

CONNECT_TIMEOUT = 2  # seconds, the least libpq accepts
_CANCEL_TIMEOUT = 1.0
_LONGEST_POLL = 3600.0
_ENDED = select.POLLRDHUP | select.POLLERR | select.POLLHUP


class SessionEndedError(SchedulerError):
    """The session is over, or was never opened; `sqlstate` is empty where the server gave no reason."""

    def __init__(self, message: str, sqlstate: str = "") -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


class NoAnswerError(SessionEndedError):
    """No answer came in time: what the server did or will do is unknown, so the session must be closed."""


class ForeignProcessError(SessionEndedError):
    """The session was opened by another process, before a fork."""


class StatementError(SchedulerError):
    """The server refused one statement; the session goes on."""

    def __init__(self, message: str, sqlstate: str) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


class Wakes(Protocol):
    """Anything with a descriptor that becomes readable when a wait should end."""

    def fileno(self) -> int: ...


class _Ready(enum.Enum):
    SOCKET = enum.auto()
    WOKEN = enum.auto()
    LATE = enum.auto()


class Session:
    """A session of this process; used by one thread."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        self._libpq = connection.pgconn
        self._libpq.nonblocking = 1
        self._owner = os.getpid()
        self._news = False
        self._end: SessionEndedError | None = None
        connection.add_notice_handler(self._take_notice)
        _sessions.add(self)

    @classmethod
    def open(cls, dsn: str, parameters: Mapping[str, str | int]) -> Session:
        """Connect outside any pool, in autocommit; `parameters` win over the DSN's.

        Raises SettingsError for a DSN that cannot be read and SessionEndedError when no server took us.
        """
        merged = {"connect_timeout": CONNECT_TIMEOUT, **read_dsn(dsn), **parameters}
        if "," in f"{merged.get('host')}{merged.get('hostaddr')}":
            merged.setdefault("target_session_attrs", "primary")
        try:
            return cls(psycopg.Connection.connect(make_conninfo("", **merged), autocommit=True))
        except psycopg.Error as error:
            raise SessionEndedError(f"cannot connect: {_one_line(error)}", error.sqlstate or "") from None

    @property
    def announced_pid(self) -> int:
        """The server process id that was told when the session began (BackendKeyData)."""
        return self._libpq.backend_pid

    @property
    def server_version(self) -> int:
        """The server's version as it announces it, for example 150004."""
        return self._libpq.server_version

    @property
    def address(self) -> str:
        """`host:port/database`, without credentials."""
        info = self._connection.info
        return f"{info.host}:{info.port}/{info.dbname}"

    def reported(self, name: str) -> str:
        """A setting that the server reports by itself whenever it changes, such as `application_name`."""
        return (self._libpq.parameter_status(name.encode()) or b"").decode()

    def ask(self, statement: str, *values: object, timeout: float, wake: Wakes | None = None) -> list[Row]:
        """The rows of one statement's answer, as text; `values` stand for $1, $2, …

        Raises StatementError when the server refuses the statement, or when `wake` made us cancel it;
        NoAnswerError after `timeout` seconds; SessionEndedError when the session is over, even if that
        happened earlier and is only seen now.
        """
        self.look()
        try:
            self._libpq.send_query_params(statement.encode(), [_as_text(value) for value in values])
            return self._collect(time.monotonic() + timeout, wake)
        except psycopg.OperationalError as error:
            raise self._ended(error) from None

    def watch(self, seconds: float, wake: Wakes) -> bool:
        """Wait until `seconds` have passed, `wake` is readable or a notification of another session came.

        True for a notification, which may also have come with an earlier answer. Raises SessionEndedError
        as soon as the session is over.
        """
        deadline = time.monotonic() + seconds
        ready = _Ready.SOCKET
        while ready is _Ready.SOCKET:
            self.look()
            if self._news:
                self._news = False
                return True
            ready = self._wait(deadline, wake)
        return False

    def look(self) -> None:
        """Read what arrived unasked; raises SessionEndedError when that is the session's end."""
        if self._owner != os.getpid():
            raise ForeignProcessError("this session was opened by another process, before a fork")
        if self._end:
            raise self._end
        try:
            if self._wait(deadline=0.0) is _Ready.SOCKET:
                self._libpq.consume_input()
            self._take_notifications()
        except psycopg.OperationalError as error:
            raise self._ended(error) from None
        if self._end:
            raise self._end

    def close(self) -> None:
        """End the session. A forked child only forgets it: a goodbye from there would end the parent's."""
        _sessions.discard(self)
        if self._owner == os.getpid():
            if isinstance(self._end, NoAnswerError):
                self._reset_on_close()
            self._connection.close()

    def point_at(self, descriptor: int) -> None:
        """Replace this process's copy of the socket, as a forked child must: the session is its parent's."""
        # The number stays taken, so that no file of the child is ever mistaken for the socket.
        with contextlib.suppress(psycopg.Error, OSError):
            os.dup2(descriptor, self._libpq.socket, inheritable=False)

    def _reset_on_close(self) -> None:
        """Let the kernel end the connection with RST, which leaves at once.

        A FIN, and with it the lock, waits in line behind a question that nobody acknowledges.
        """
        with (
            contextlib.suppress(psycopg.Error, OSError),
            socket.socket(fileno=os.dup(self._libpq.socket)) as line,
        ):
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def _collect(self, deadline: float, wake: Wakes | None) -> list[Row]:
        rows: list[Row] = []
        refusal: StatementError | None = None
        while True:
            events = select.POLLIN | (select.POLLOUT if self._libpq.flush() else 0)
            while not self._libpq.is_busy():
                result = self._libpq.get_result()
                if result is None:
                    return _unless(refusal, rows)
                refusal = refusal or self._refusal(result)
                rows += _rows(result)
            ready = self._wait(deadline, wake, events)
            if ready is _Ready.LATE:
                self._end = NoAnswerError(f"{self.address} did not answer in time")
                raise self._end
            if ready is _Ready.WOKEN:
                self._cancel()
                deadline, wake = time.monotonic() + _CANCEL_TIMEOUT, None
            self._libpq.consume_input()

    def _wait(self, deadline: float, wake: Wakes | None = None, events: int = select.POLLIN) -> _Ready:
        """What is ready first. A deadline that has passed still has the socket looked at once.

        So an answer that waits for a process that was frozen is taken, and not called late.
        """
        poll = select.poll()
        poll.register(self._libpq.socket, events | _ENDED)
        if wake is not None:
            poll.register(wake, select.POLLIN)
        left = min(max(deadline - time.monotonic(), 0.0), _LONGEST_POLL)
        ready = [descriptor for descriptor, _ in poll.poll(math.ceil(left * 1000))]
        if self._libpq.socket in ready:
            return _Ready.SOCKET
        return _Ready.WOKEN if ready else _Ready.LATE

    def _cancel(self) -> None:
        # When the request gets nowhere, the limit on the answer that follows ends the session.
        with contextlib.suppress(psycopg.Error):
            self._connection.cancel_safe(timeout=_CANCEL_TIMEOUT)

    def _refusal(self, result: pq.abc.PGresult) -> StatementError | None:
        if result.status != pq.ExecStatus.FATAL_ERROR:
            return None
        told = psycopg.errors.Diagnostic(result)
        if told.severity_nonlocalized != "ERROR":
            raise self._ended_by(told)
        return StatementError(told.message_primary or "", told.sqlstate or "")

    def _take_notice(self, told: psycopg.errors.Diagnostic) -> None:
        # A crash or an immediate stop is told as a warning (57P02), just before the socket closes.
        if told.severity_nonlocalized in ("FATAL", "PANIC") or (told.sqlstate or "").startswith("57P"):
            self._ended_by(told)

    def _take_notifications(self) -> None:
        while notification := self._libpq.notifies():
            self._news |= notification.be_pid != self._libpq.backend_pid

    def _ended(self, error: psycopg.Error) -> SessionEndedError:
        # The server's last words may have been read but not yet understood.
        with contextlib.suppress(psycopg.Error):
            self._libpq.notifies()
        self._end = self._end or SessionEndedError(_one_line(error))
        return self._end

    def _ended_by(self, told: psycopg.errors.Diagnostic) -> SessionEndedError:
        self._end = SessionEndedError(
            told.message_primary or "the server ended the session", told.sqlstate or ""
        )
        return self._end


def read_dsn(dsn: str) -> dict[str, str | int | None]:
    """The parameters of a libpq URL or key=value DSN; SQLAlchemy's `postgresql+driver://` is read too."""
    try:
        return dict(conninfo_to_dict(re.sub(r"^postgres(?:ql)?\+\w+://", "postgresql://", dsn)))
    except psycopg.Error:
        raise SettingsError(
            "the DSN of the database cannot be read (it is not shown here, since it may hold a password): "
            "write postgresql://user@host:5432/database"
        ) from None


def _as_text(value: object) -> bytes | None:
    return None if value is None else str(value).encode()


def _rows(result: pq.abc.PGresult) -> list[Row]:
    return [
        tuple(_text_of(result.get_value(row, column)) for column in range(result.nfields))
        for row in range(result.ntuples)
    ]


def _text_of(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


def _unless(refusal: StatementError | None, rows: list[Row]) -> list[Row]:
    if refusal:
        raise refusal
    return rows


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


_sessions: weakref.WeakSet[Session] = weakref.WeakSet()


def _drop_inherited_sockets() -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for session in list(_sessions):
        session.point_at(nowhere)
    os.close(nowhere)


os.register_at_fork(after_in_child=_drop_inherited_sockets)
