"""Real workers, real faults: from the side effects of the job bodies, nothing runs twice and nothing is lost."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from argus_sched.postgres.embedded import EmbeddedPostgres
from tests.workers.scheduler_cluster import Cluster, sampling_holders, until

pytestmark = pytest.mark.slow

# Half a second apart, so that a kill finds at most one of them between claim and finish.
EVERY_SECOND = [
    {"id": name, "every": 1, "phase": phase, "catch_up": "all", "name": f"Job {name}"}
    for name, phase in (("alpha", 0), ("beta", 0.5))
]


@pytest.fixture
def own_server() -> Iterator[EmbeddedPostgres]:
    """A server that a test may stop."""
    with EmbeddedPostgres() as server:
        yield server


@pytest.fixture
def cluster(database: str, tmp_path: Path) -> Iterator[Cluster]:
    """Two-second-old workers are started by the test; they are stopped here."""
    one = Cluster(database, tmp_path, EVERY_SECOND)
    yield one
    one.stop()


def settle(cluster: Cluster, old_leader: int = 0) -> None:
    """Wait for a leader other than `old_leader`, some more runs, then stop everything."""
    cluster.leader(other_than=old_leader)
    cluster.wait_for_runs(6)
    cluster.stop()


def test_kill_minus_9_of_the_leader_doubles_and_loses_nothing(cluster: Cluster) -> None:
    cluster.start(3)
    with sampling_holders(cluster) as holders:
        for _ in range(2):
            leader = cluster.leader()
            cluster.wait_for_runs(4)
            os.kill(leader, signal.SIGKILL)
            cluster.leader(other_than=leader)
        settle(cluster)
    found = cluster.judge()
    assert found.doubled == []
    assert found.lost == []
    assert len(found.interrupted) <= 2
    assert found.total > 10
    assert max(holders) == 1


def test_a_terminated_lock_session_demotes_and_loses_nothing(cluster: Cluster) -> None:
    cluster.start(2)
    with sampling_holders(cluster) as holders:
        for _ in range(3):
            cluster.leader()
            cluster.wait_for_runs(4)
            assert cluster.terminate_leader_session() == 1
        settle(cluster)
    found = cluster.judge()
    assert (found.doubled, found.lost, found.interrupted) == ([], [], [])
    assert max(holders) == 1
    assert "terminated" in {event["cause"] for event in cluster.effects("demoted")}


def test_a_frozen_leader_is_replaced_and_runs_nothing_when_it_wakes(cluster: Cluster) -> None:
    cluster.start(2)
    frozen = cluster.leader()
    cluster.wait_for_runs(4)
    with sampling_holders(cluster) as holders:
        os.kill(frozen, signal.SIGSTOP)
        cluster.leader(other_than=frozen)
        cluster.wait_for_runs(6)
        os.kill(frozen, signal.SIGCONT)
        cluster.wait_for_runs(6)
        cluster.stop()
    found = cluster.judge()
    assert (found.doubled, found.lost) == ([], [])
    # A run that was under way when its process froze may count as interrupted for a while, but not for good.
    assert found.interrupted == []
    assert max(holders) == 1


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_restart_of_postgres_is_caught_up(own_server: EmbeddedPostgres, tmp_path: Path, mode: str) -> None:
    cluster = Cluster(own_server.dsn(), tmp_path, EVERY_SECOND)
    try:
        cluster.start(2)
        cluster.leader()
        cluster.wait_for_runs(4)
        own_server.stop(mode)
        time.sleep(2.5)  # the fault itself: nobody can lead for this long
        own_server.start()
        settle(cluster)
    finally:
        cluster.stop()
    found = cluster.judge()
    assert (found.doubled, found.lost, found.interrupted) == ([], [], [])


def test_a_forked_child_that_keeps_the_sockets_does_not_keep_the_leadership(cluster: Cluster) -> None:
    cluster.start(2)
    leader = cluster.leader()
    cluster.wait_for_runs(2)
    os.kill(leader, signal.SIGUSR1)
    cluster.wait_for_runs(2)
    os.kill(leader, signal.SIGKILL)
    settle(cluster, leader)
    found = cluster.judge()
    assert (found.doubled, found.lost) == ([], [])
    assert len(found.interrupted) <= 1


def test_a_clean_stop_hands_over_without_a_gap(cluster: Cluster) -> None:
    first, _ = cluster.start(2)
    leader = cluster.leader()
    cluster.wait_for_runs(4)
    os.kill(leader, signal.SIGTERM)
    settle(cluster, leader)
    found = cluster.judge()
    assert (found.doubled, found.lost, found.interrupted) == ([], [], [])
    assert first.returncode == 0
    assert all(event["finished"] for event in cluster.effects("stopped"))


def slow_job(policy: str) -> list[dict[str, Any]]:
    return [{"id": "slow", "every": 1, "catch_up": "all", "slow": 0.6, "on_interrupted": policy}]


@pytest.mark.parametrize(("policy", "check"), [
    ("at_most_once", lambda interrupted, again: interrupted == 1 and again == 0),
    ("at_least_once", lambda interrupted, again: interrupted == 0 and again == 1),
])  # fmt: skip
def test_a_run_that_dies_with_its_worker(
    database: str, tmp_path: Path, policy: str, check: Callable[[int, int], bool]
) -> None:
    cluster = Cluster(database, tmp_path, slow_job(policy))
    try:
        cluster.start(2)
        leader = cluster.leader()
        # In the middle of a body: it has begun, and has not ended.
        until("a body under way", lambda: under_way(cluster, leader))
        os.kill(leader, signal.SIGKILL)
        settle(cluster, leader)
    finally:
        cluster.stop()
    found = cluster.judge()
    again = [run for run in cluster.effects("run") if run["attempt"] == 2]
    assert (found.doubled, found.lost) == ([], [])
    assert check(len(found.interrupted), len(again))


def under_way(cluster: Cluster, pid: int) -> bool:
    begun = [run["due"] for run in cluster.effects("run") if run["pid"] == pid]
    ended = [run["due"] for run in cluster.effects("end") if run["pid"] == pid]
    return len(begun) == len(ended) + 1


def test_two_leaders_at_once_run_nothing_twice(cluster: Cluster) -> None:
    # Two keys make two leaders of one namespace, which no lock prevents: the claims have to.
    cluster.start(1, key=911_000_001, without=["deferral"])
    cluster.leader()
    cluster.start(1, coordination="every_worker")
    cluster.wait_for_runs(20)
    cluster.stop()
    found = cluster.judge()
    assert (found.doubled, found.lost, found.interrupted) == ([], [], [])
    assert len({run["pid"] for run in cluster.effects("run")}) == 2


def test_without_claims_two_workers_double(cluster: Cluster) -> None:
    cluster.start(2, coordination="every_worker", without=["claims"])
    until("a doubled fire", lambda: cluster.judge().doubled)
