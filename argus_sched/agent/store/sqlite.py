"""The agent's state in one SQLite file: evidence, last verdicts, and the tables of what is told.

Read without a transaction, decide, and write in one; WAL, so that a reader never waits for a writer. Every
trouble with the file is a StoreError of one sentence. The schema is a list of statements for each part,
applied in order, and `schema_steps` says how many: a file that has more than this version knows is refused.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from argus_sched.agent.check import PassReport
from argus_sched.agent.instants import parse_rfc3339, rfc3339
from argus_sched.agent.judging.evidence import Evidence
from argus_sched.agent.judging.evidence_json import from_json, to_json
from argus_sched.agent.status import Status
from argus_sched.agent.store import incident_rows
from argus_sched.agent.store.new_file import make_sure_of
from argus_sched.agent.store.stand_in import IN_MEMORY
from argus_sched.clock import Clock, SystemClock
from argus_sched.errors import StoreError

BUSY_SECONDS = 5.0
MIGRATIONS: tuple[str, ...] = (
    "CREATE TABLE evidence (app TEXT PRIMARY KEY, saved_at TEXT NOT NULL, body TEXT NOT NULL)",
    "CREATE TABLE results (target TEXT PRIMARY KEY, status INTEGER NOT NULL, phase TEXT NOT NULL)",
    "CREATE TABLE last_pass (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), at TEXT NOT NULL)",
)
PARTS = {"passes": MIGRATIONS, "incidents": incident_rows.MIGRATIONS}


@dataclass(frozen=True)
class Memory:
    """What earlier passes left: evidence by application, status by target, when the last pass was."""

    evidence: Mapping[str, Evidence] = field(default_factory=dict)
    statuses: Mapping[str, Status] = field(default_factory=dict)
    last_pass: datetime | None = None


class Store:
    """The state file at `path`; nothing is opened or created before it is needed."""

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        self.path = path
        self._clock = clock or SystemClock()
        self._connection: sqlite3.Connection | None = None

    def recall(self) -> Memory:
        """What earlier passes left, nothing when there is no file; needs no right to write."""
        with self._errors("read"):
            if not _is_there(self.path):
                return Memory()
            with contextlib.closing(_open_for_reading(self.path)) as connection:
                if not _applied(connection, self.path):
                    return Memory()
                bodies = dict(connection.execute("SELECT app, body FROM evidence"))
                statuses = dict(connection.execute("SELECT target, status FROM results"))
                at = connection.execute("SELECT at FROM last_pass").fetchone()
        try:
            return Memory(
                {app: from_json(body) for app, body in bodies.items()},
                {target: Status(status) for target, status in statuses.items()},
                parse_rfc3339(at[0]) if at else None,
            )
        except ValueError as error:
            raise _damaged(self.path, error) from error

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """A copy in memory of what the file holds, empty tables without one; needs no right to write.

        The tables are this version's, whatever version wrote the file.
        """
        with self._errors("read"), contextlib.closing(_in_memory()) as copy:
            if _is_there(self.path):
                with contextlib.closing(_open_for_reading(self.path)) as connection:
                    connection.backup(copy)
            _migrate(copy, self.path)
            yield copy

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A connection inside a write transaction: committed at the end, rolled back on an error."""
        with self._errors("written"):
            connection = self._writable()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                _roll_back(connection)
                raise

    def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _writable(self) -> sqlite3.Connection:
        if self._connection is None:
            if self.path != IN_MEMORY:
                _is_there(self.path)
                make_sure_of(self.path)
            connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                _migrate(connection, self.path)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    @contextlib.contextmanager
    def _errors(self, verb: str) -> Iterator[None]:
        """Turn what SQLite and the file system say into one sentence that names the file."""
        try:
            yield
        except (sqlite3.OperationalError, OSError) as error:
            raise StoreError(f"the state file {self.path} cannot be {verb}: {_cause(error)}") from error
        except sqlite3.DatabaseError as error:
            raise _damaged(self.path, error) from error


def remember(connection: sqlite3.Connection, evidence: Mapping[str, Evidence], report: PassReport) -> None:
    """Keep what a pass found, inside the caller's transaction."""
    at = rfc3339(report.at)
    connection.executemany(
        "INSERT OR REPLACE INTO evidence (app, saved_at, body) VALUES (?, ?, ?)",
        [(app, at, to_json(known)) for app, known in evidence.items()],
    )
    connection.execute("DELETE FROM results")
    connection.executemany(
        "INSERT OR REPLACE INTO results (target, status, phase) VALUES (?, ?, ?)",
        [(result.target, int(result.status), result.phase.value) for result in report.results],
    )
    connection.execute("INSERT OR REPLACE INTO last_pass (only_row, at) VALUES (1, ?)", (at,))


def _is_there(path: Path) -> bool:
    """Whether there is a state file; raises StoreError for what is no file: SQLite would wait for a pipe, and
    leave a journal beside a device."""
    if path.exists() and not path.is_file():
        raise StoreError(f"the state file {path} is no file: give `state` the path of a file, or of none yet")
    return path.exists()


def _open_for_reading(path: Path) -> sqlite3.Connection:
    uri = path.absolute().as_uri()
    connection = sqlite3.connect(f"{uri}?mode=ro", timeout=BUSY_SECONDS, isolation_level=None, uri=True)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return connection
    except sqlite3.OperationalError:
        # Where nothing may be written, SQLite cannot make the index of the WAL; the file alone will do.
        connection.close()
        return sqlite3.connect(f"{uri}?immutable=1", isolation_level=None, uri=True)


def _in_memory() -> sqlite3.Connection:
    return sqlite3.connect(IN_MEMORY, isolation_level=None)


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring every part up to this version, all or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        applied = _applied(connection, path)
        connection.execute(
            "CREATE TABLE IF NOT EXISTS schema_steps (part TEXT PRIMARY KEY, steps INTEGER NOT NULL)"
        )
        for part, statements in PARTS.items():
            for statement in statements[applied.get(part, 0) :]:
                connection.execute(statement)
            connection.execute("INSERT OR REPLACE INTO schema_steps VALUES (?, ?)", (part, len(statements)))
        connection.execute("COMMIT")
    except BaseException:
        _roll_back(connection)
        raise


def _roll_back(connection: sqlite3.Connection) -> None:
    """Undo what is open; SQLite itself has done so where it ran out of space."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _applied(connection: sqlite3.Connection, path: Path) -> dict[str, int]:
    """How many statements of each part the file has; empty for a new file. Refuses a newer one."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'schema_steps'").fetchone():
        return {}
    applied = dict(connection.execute("SELECT part, steps FROM schema_steps"))
    for part, steps in applied.items():
        if steps > len(PARTS.get(part, ())):
            raise StoreError(
                f"the state file {path} was written by a newer argus-sched ({part}: step {steps}): "
                "upgrade this one, or give it another `state`"
            )
    return applied


def _damaged(path: Path, error: Exception) -> StoreError:
    return StoreError(f"the state file {path} is damaged ({error}): move it away, and the logs are read anew")


def _cause(error: sqlite3.OperationalError | OSError) -> str:
    text = error.strerror if isinstance(error, OSError) else str(error)
    return text or type(error).__name__
