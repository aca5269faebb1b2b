"""A database that a run uses: made ready before it, and without the run's rows after it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg
from psycopg import sql

from argus_sched.errors import SourceError
from argus_sched.postgres import schema
from argus_sched.postgres.link import behind_pooler, conninfo


@contextmanager
def borrowed(dsn: str, namespace: str) -> Iterator[None]:
    """Create the tables where they are missing; at the end they stay, without the rows of `namespace`.

    Raises SourceError for a database that cannot be used so, and SchemaError as `schema.migrate` does.
    """
    try:
        schema.migrate(dsn)
        # Also a trial: a role that may not write is told here, and not by workers that never lead.
        _forget(dsn, namespace)
    except psycopg.Error as error:
        raise SourceError(f"the database cannot be used: {' '.join(str(error).split())}") from error
    try:
        yield
    finally:
        with suppress(psycopg.Error):
            _forget(dsn, namespace)


def _forget(dsn: str, namespace: str) -> None:
    with psycopg.connect(conninfo(dsn), application_name="argus-harness") as connection:
        if pooler := behind_pooler(connection):
            raise SourceError(pooler)
        for table in schema.TABLES:
            statement = sql.SQL("DELETE FROM argus_sched.{} WHERE namespace = %s").format(
                sql.Identifier(table)
            )
            connection.execute(statement, (namespace,))
