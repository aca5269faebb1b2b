"""An idle scheduler is a good guest: no line in the server's log, nothing held back, few questions."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from argus_sched.postgres.embedded import EmbeddedPostgres
from tests.workers.scheduler_cluster import Cluster, until

pytestmark = pytest.mark.slow

LINE = re.compile(r"\[\d+\] (?P<name>\S*) (?P<level>[A-Z]+): +(?P<text>.*)")
WATCHED = 20.0
HOURLY = [{"id": "hourly", "every": 3600}]


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedPostgres]:
    """A server that logs each statement."""
    with EmbeddedPostgres({"log_statement": "all"}) as one:
        yield one


@pytest.fixture
def idle(server: EmbeddedPostgres, tmp_path: Path) -> Iterator[Cluster]:
    """Three workers with nothing to do: a leader, an heir and one more."""
    cluster = Cluster(
        server.create_database(f"idle_{tmp_path.name[-9:]}"), tmp_path, HOURLY, {"timing": "default"}
    )
    cluster.start(3)
    until("a leader and an heir", lambda: "heir namespace=" in cluster.logs() and cluster.effects("elected"))
    time.sleep(3)
    yield cluster
    cluster.stop()


def test_three_idle_workers_ask_little_and_log_nothing(idle: Cluster, server: EmbeddedPostgres) -> None:
    begins = server.log.stat().st_size
    time.sleep(WATCHED)
    log = server.log.read_bytes()[begins:].decode()
    found = [match for match in map(LINE.search, log.splitlines()) if match]
    asked = Counter(match["name"].split(":")[0] for match in found if match["level"] == "LOG")
    assert [match["text"] for match in found if match["level"] not in ("LOG", "DETAIL")] == []
    # The leader: at most 4 a second; the heir 1.2; the third 1 (and a little, for its own heartbeat).
    assert asked["scheduler-leader"] + asked["argus-worker"] <= 4 * WATCHED
    assert asked["scheduler-standby"] <= (1.2 + 1.05) * WATCHED


def test_vacuum_and_concurrent_indexes_are_not_held_back(idle: Cluster) -> None:
    with psycopg.connect(idle.dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE rows AS SELECT n FROM generate_series(1, 40000) AS n")
        connection.execute("DELETE FROM rows WHERE n % 2 = 0")
        for statement in ("VACUUM rows", "CREATE INDEX CONCURRENTLY ON rows (n)"):
            began = time.monotonic()
            connection.execute(statement.encode())
            assert time.monotonic() - began < 2
