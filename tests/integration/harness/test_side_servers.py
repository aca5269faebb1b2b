"""The servers beside the database: a pooler that shares a session, a hot standby, a Redis."""

from __future__ import annotations

import socket

import psycopg
import pytest

from argus_sched.harness import side_servers
from argus_sched.postgres.embedded import EmbeddedPostgres

DSN = "postgresql://postgres@{}:{}/postgres"


@pytest.mark.pgbouncer
def test_two_clients_of_the_pooler_share_one_session_and_so_one_lock(postgres: EmbeddedPostgres) -> None:
    if not side_servers.has_pooler():
        pytest.skip("needs pgbouncer")
    with side_servers.pooler(("127.0.0.1", postgres.port), "postgres") as address:
        first = psycopg.connect(DSN.format(*address), autocommit=True)
        second = psycopg.connect(DSN.format(*address), autocommit=True)
        with first, second:
            answers = [
                one.execute("SELECT pg_backend_pid(), pg_try_advisory_lock(77)").fetchone()
                for one in (first, second)
            ]
    assert answers[0] is not None
    assert answers[0] == answers[1]
    assert answers[0][1] is True


def test_a_hot_standby_reads_what_the_primary_wrote_and_has_locks_of_its_own() -> None:
    with EmbeddedPostgres() as primary, psycopg.connect(primary.dsn(), autocommit=True) as writer:
        writer.execute("CREATE TABLE seen (x int)")
        writer.execute("SELECT pg_advisory_lock(77)")
        with (
            side_servers.hot_standby(primary) as address,
            psycopg.connect(DSN.format(*address), autocommit=True) as reader,
        ):
            row = reader.execute(
                "SELECT pg_is_in_recovery(), to_regclass('seen') IS NOT NULL, pg_try_advisory_lock(77)"
            )
            assert row.fetchone() == (True, True, True)


@pytest.mark.redis
def test_a_redis_answers_and_is_gone_afterwards() -> None:
    with side_servers.redis() as url:
        port = int(url.rpartition(":")[2].partition("/")[0])
        with socket.create_connection(("127.0.0.1", port), 10) as connection:
            connection.sendall(b"PING\r\n")
            assert connection.recv(64) == b"+PONG\r\n"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 10)
