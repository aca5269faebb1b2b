"""A database that a run uses is told to be unfit before the run, and keeps nothing of it."""

from __future__ import annotations

import psycopg
import pytest

from argus_sched.errors import ArgusError, SourceError
from argus_sched.harness.borrowed import borrowed
from argus_sched.postgres import schema

LEAVE = "INSERT INTO argus_sched.leader (namespace, lock_key) VALUES (%s, %s)"


def namespaces(dsn: str) -> set[str]:
    with psycopg.connect(dsn) as connection:
        return {row[0] for row in connection.execute("SELECT namespace FROM argus_sched.leader")}


def test_the_rows_of_the_run_are_gone_and_those_of_others_stay(database: str) -> None:
    schema.migrate(database)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(LEAVE, ("shop", 1))
        with borrowed(database, "harness-1"):
            connection.execute(LEAVE, ("harness-1", 2))
            assert namespaces(database) == {"shop", "harness-1"}
    assert namespaces(database) == {"shop"}


def test_a_database_that_is_away_or_read_only_is_told_before_the_run(database: str) -> None:
    read_only = f"{database}?options=-cdefault_transaction_read_only%3Don"
    for dsn in ("postgresql://127.0.0.1:1/x", read_only):
        with pytest.raises(SourceError, match="the database cannot be used: "), borrowed(dsn, "harness-1"):
            raise AssertionError("the run began")
    schema.migrate(database)
    with pytest.raises(ArgusError), borrowed(read_only, "harness-1"):
        raise AssertionError("the run began")
