"""The scheduler's tables: numbered migrations, applied once, and a check that says what is wrong."""

from __future__ import annotations

import time
from dataclasses import dataclass
from importlib import resources

import psycopg
from psycopg import errors, sql

from argus_sched.advisory_keys import MIGRATION
from argus_sched.errors import SchemaError
from argus_sched.postgres.link import Connection, behind_pooler, conninfo

SCHEMA = "argus_sched"
TABLES = ("leader", "namespace", "job", "job_switch", "run", "worker")
LOCK_TIMEOUT = 60.0
_RETRY = 0.1


@dataclass(frozen=True)
class Migration:
    """One numbered step, as shipped with this version."""

    number: int
    name: str
    statements: str


def shipped() -> list[Migration]:
    """Every migration of this version, in order."""
    files = resources.files("argus_sched.postgres").joinpath("migrations").iterdir()
    found = [(file.name, file.read_text(encoding="utf-8")) for file in files if file.name.endswith(".sql")]
    return [Migration(int(name[:4]), name.removesuffix(".sql"), text) for name, text in sorted(found)]


def migrate(dsn: str, timeout: float = LOCK_TIMEOUT) -> list[str]:
    """Apply what is missing, one worker at a time; returns the names applied, none when all was there.

    Safe when many workers start at once: the others wait at most `timeout` seconds for the first. Raises
    SchemaError when the tables are newer than this version or the role may not create them.
    """
    with _connected(dsn) as connection:
        # The versions first: a role that may not create tables starts fine on current ones.
        if not _missing(connection):
            return []
        if pooler := behind_pooler(connection):
            raise SchemaError(pooler)
        _lock(connection, timeout)
        try:
            return [_apply(connection, step) for step in _missing(connection)]
        except errors.InsufficientPrivilege as error:
            raise SchemaError(
                f"role {_role(connection)} may not create the tables of argus-sched in database "
                f"{connection.info.dbname}: run  argus-sched scheduler migrate  as the owner "
                f"({_first_line(error)})"
            ) from error
        finally:
            connection.execute("SELECT pg_advisory_unlock(%s)", (MIGRATION.number,))


def check(dsn: str) -> None:
    """Return when the tables are those of this version and usable; else SchemaError says what to do."""
    with _connected(dsn) as connection:
        missing = _missing(connection)
        if missing:
            count, total = len(missing), len(shipped())
            state = "are missing" if count == total else f"are {count} migration(s) behind this version"
            raise SchemaError(
                f"the tables of argus-sched {state} in database {connection.info.dbname}: run  argus-sched "
                "scheduler migrate  or pass migrate=True"
            )
        _check_rights(connection)


def _connected(dsn: str) -> Connection:
    return psycopg.connect(conninfo(dsn), autocommit=True, application_name="argus-schema")


def _missing(connection: Connection) -> list[Migration]:
    applied = _applied(connection)
    steps = shipped()
    newer = applied - {step.number for step in steps}
    if newer:
        raise SchemaError(
            f"the tables of argus-sched in database {connection.info.dbname} are newer (migration "
            f"{max(newer)}) than this version knows ({steps[-1].number}): upgrade argus-sched on this worker"
        )
    return [step for step in steps if step.number not in applied]


def _applied(connection: Connection) -> set[int]:
    try:
        row = connection.execute("SELECT to_regclass('argus_sched.migration') IS NOT NULL").fetchone()
        if not row or not row[0]:
            return set()
        return {number for (number,) in connection.execute("SELECT number FROM argus_sched.migration")}
    except errors.InsufficientPrivilege as error:
        raise _without_rights(connection, f"{SCHEMA}.migration") from error


def _lock(connection: Connection, timeout: float) -> None:
    # Asked for repeatedly: a session that waits in pg_advisory_lock holds back VACUUM and concurrent indexes.
    deadline = time.monotonic() + timeout
    while not _true(connection, "SELECT pg_try_advisory_lock(%s)", (MIGRATION.number,)):
        if time.monotonic() > deadline:
            raise SchemaError(
                f"another migration holds advisory lock {MIGRATION.number} for more than {timeout:g} s: "
                "find it in pg_locks, end it, start again"
            )
        time.sleep(_RETRY)


def _apply(connection: Connection, step: Migration) -> str:
    with connection.transaction():
        connection.execute("CREATE SCHEMA IF NOT EXISTS argus_sched")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS argus_sched.migration (number integer PRIMARY KEY, "
            "name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())"
        )
        connection.execute(step.statements.encode())
        connection.execute(
            "INSERT INTO argus_sched.migration (number, name) VALUES (%s, %s)", (step.number, step.name)
        )
    return step.name


def _check_rights(connection: Connection) -> None:
    for table in TABLES:
        name = f"{SCHEMA}.{table}"
        allowed = "SELECT bool_and(has_table_privilege(%s, kind)) FROM unnest(%s::text[]) AS kind"
        try:
            usable = _true(connection, allowed, (name, ["SELECT", "INSERT", "UPDATE", "DELETE"]))
        except errors.InsufficientPrivilege as error:
            raise _without_rights(connection, name) from error
        if not usable:
            raise _without_rights(connection, name)


def _without_rights(connection: Connection, table: str) -> SchemaError:
    role = sql.Identifier(_role(connection)).as_string(connection)
    return SchemaError(
        f"role {role} may not read and write {table} in database {connection.info.dbname}: run  "
        f"GRANT USAGE ON SCHEMA {SCHEMA} TO {role}; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN "
        f"SCHEMA {SCHEMA} TO {role}"
    )


def _true(connection: Connection, query: str, parameters: tuple[object, ...]) -> bool:
    row = connection.execute(query, parameters).fetchone()
    return bool(row and row[0])


def _role(connection: Connection) -> str:
    row = connection.execute("SELECT current_user").fetchone()
    return str(row[0]) if row else "?"


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
