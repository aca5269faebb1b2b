"""What the election costs a database at rest: queries, snapshots, and lines in the server's log."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from argus_sched.postgres.embedded import EmbeddedPostgres
from argus_sched.scheduling.leadership import LONGEST_WAIT
from tests.workers.election_cluster import Cluster, Connection, cluster

pytestmark = pytest.mark.slow

_STATEMENT = re.compile(r"scheduler-(?:leader|standby):(\d+) LOG: +(?:execute|statement)")
_COMPLAINT = re.compile(r"ERROR|FATAL|PANIC|WARNING|still waiting|deadlock")


@pytest.fixture
def talkative_server() -> Iterator[EmbeddedPostgres]:
    """A server that logs every statement, and every wait longer than its default."""
    with EmbeddedPostgres({"log_statement": "all", "log_lock_waits": "on"}) as server:
        yield server


def test_at_rest_the_leader_asks_at_most_4_times_a_second_the_heir_1_2_and_the_others_once(
    talkative_server: EmbeddedPostgres,
) -> None:
    seconds = 20
    with cluster(talkative_server.create_database("labs")) as workers:
        leader, heir = workers.start_leader_and_heir()
        others = [workers.start(), workers.start()]
        for other in others:
            other.expect("standby")
        settled = talkative_server.log.stat().st_size
        time.sleep(seconds)
        log = talkative_server.log.read_bytes()[settled:].decode()
    asked = Counter(map(int, _STATEMENT.findall(log)))
    rates = {worker.pid: asked[worker.pid] / seconds for worker in (leader, heir, *others)}
    assert 0 < rates[leader.pid] <= 4, rates
    assert 0 < rates[heir.pid] <= 1.2, rates
    for other in others:
        # One probe may fall on the edge of the counted time.
        assert 0 < rates[other.pid] <= 1 + 1 / seconds, rates


def test_vacuum_and_concurrent_indexing_finish_within_two_seconds_beside_a_waiting_heir(
    talkative_server: EmbeddedPostgres,
) -> None:
    with cluster(talkative_server.create_database("labs")) as workers, workers.connect() as connection:
        workers.start_leader_and_heir()
        workers.start().expect("standby")
        connection.execute("CREATE TABLE rows AS SELECT n FROM generate_series(1, 20000) AS n")
        for _ in range(5):
            connection.execute("DELETE FROM rows WHERE n % 7 = 0")
            assert seconds_of(connection, "VACUUM rows") < 2
            assert seconds_of(connection, "CREATE INDEX CONCURRENTLY by_n ON rows (n)") < 2
            connection.execute("DROP INDEX by_n")


def test_no_session_of_ours_holds_a_snapshot_for_as_long_as_two_waits(
    talkative_server: EmbeddedPostgres,
) -> None:
    with cluster(talkative_server.create_database("labs")) as workers, workers.connect() as connection:
        workers.start_leader_and_heir()
        ages = [oldest_snapshot(connection) for _ in samples(5.0)]
    assert 0 < max(ages) < 2 * LONGEST_WAIT


def test_a_minute_at_rest_leaves_no_complaint_in_the_servers_log(talkative_server: EmbeddedPostgres) -> None:
    with cluster(talkative_server.create_database("labs")) as workers:
        workers.start_leader_and_heir()
        third = workers.start()
        third.expect("standby")
        threading.Event().wait(60)
        assert not any(worker.said("demoted") or worker.said("reconnecting") for worker in workers.workers)
        stop_all(workers)
    complaints = [line for line in talkative_server.log.read_text().splitlines() if _COMPLAINT.search(line)]
    assert complaints == []


def stop_all(workers: Cluster) -> None:
    for worker in workers.workers:
        worker.tell("stop")
        worker.expect("stopped")


def seconds_of(connection: Connection, statement: str) -> float:
    started = time.monotonic()
    connection.execute(statement.encode())
    return time.monotonic() - started


def samples(seconds: float) -> Iterator[float]:
    end = time.monotonic() + seconds
    while (now := time.monotonic()) < end:
        yield now
        time.sleep(0.02)


def oldest_snapshot(connection: Connection) -> float:
    row = connection.execute(
        "SELECT coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)), 0) FROM pg_stat_activity "
        "WHERE application_name LIKE 'scheduler-%' AND backend_xmin IS NOT NULL"
    ).fetchone()
    assert row
    return float(row[0])
