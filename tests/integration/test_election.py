"""The election among real processes on a real Postgres: every fault, and never two holders of the lock."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator

import pytest

from argus_sched.postgres.embedded import EmbeddedPostgres
from tests.workers.election_cluster import Cluster, Process, cluster, holders, prepare
from tests.workers.proxy import Proxy


@pytest.fixture
def own_server() -> Iterator[EmbeddedPostgres]:
    """A server that this test may stop and crash."""
    with EmbeddedPostgres() as server:
        yield server


def test_two_workers_have_one_leader_and_one_standby(database: str) -> None:
    with cluster(database) as workers:
        leader, heir = workers.start_leader_and_heir()
        assert "Scheduler singleton lock acquired (key=911000001)" in leader.lines()
        assert heir.lines() == ["Scheduler standby: singleton failover probe started (retry every 1s)"]
        assert not heir.said("promote")
        with workers.connect() as connection:
            named = connection.execute(
                "SELECT state, application_name FROM pg_stat_activity WHERE pid = ANY(%s)",
                (holders(connection),),
            ).fetchall()
        assert named == [("idle", f"scheduler-leader:{leader.pid}")]


@pytest.mark.parametrize("key", [-5, 2**62 + 7, -(2**63)])
def test_any_bigint_is_a_key(database: str, key: int) -> None:
    with cluster(database, key=key) as workers:
        leader, heir = workers.start_leader_and_heir()
        heir.expect("elected", leader.tell("stop"))


def test_a_killed_leader_is_followed_by_the_heir(database: str) -> None:
    with cluster(database) as workers:
        leader, heir = workers.start_leader_and_heir()
        won = heir.expect("elected", leader.send(signal.SIGKILL))
        assert won["epoch"] == 2
        assert "Scheduler failover: acquired singleton lock" in heir.lines()


def test_when_leader_and_heir_die_together_a_standby_follows(database: str) -> None:
    with cluster(database) as workers:
        leader, heir = workers.start_leader_and_heir()
        third = workers.start()
        third.expect("standby")
        leader.send(signal.SIGKILL)
        third.expect("elected", heir.send(signal.SIGKILL))


def test_a_new_leaders_seat_as_heir_is_taken_at_once(database: str) -> None:
    with cluster(database) as workers:
        leader, heir = workers.start_leader_and_heir()
        third = workers.start()
        third.expect("standby")
        killed = leader.send(signal.SIGKILL)
        heir.expect("elected", killed)
        third.expect("heir", killed)
        third.expect("elected", heir.send(signal.SIGKILL))


def test_a_terminated_leader_demotes_and_the_heir_follows(database: str) -> None:
    with cluster(database) as workers:
        leader, heir = workers.start_leader_and_heir()
        terminated = time.monotonic()
        with workers.connect() as connection:
            connection.execute("SELECT pg_terminate_backend(%s)", (leader.expect("elected")["backend_pid"],))
        demoted = leader.expect("demoted", terminated)
        assert demoted["cause"] == "terminated"
        # The session's end was seen on the socket, not by the next tick.
        assert demoted["silence_ms"] < 500
        assert heir.expect("elected", terminated)["epoch"] == 2
        leader.expect("recovered", terminated)


def test_a_clean_stop_hands_over_and_a_stopped_heir_makes_room(database: str) -> None:
    with cluster(database) as workers:
        leader, heir = workers.start_leader_and_heir()
        third = workers.start()
        third.expect("standby")
        third.expect("heir", heir.tell("stop"))
        heir.expect("stopped")
        third.expect("elected", leader.tell("stop"))
        assert leader.expect("demoted")["cause"] == "stopped"


def test_without_an_heir_a_clean_stop_is_announced(database: str) -> None:
    with cluster(database, "--timing", "recipe") as workers:
        leader, standby = workers.start(), workers.start()
        first = time.monotonic()
        while not (leader.said("elected") or standby.said("elected")):
            assert time.monotonic() - first < 60
            time.sleep(0.01)
        if not leader.said("elected"):
            leader, standby = standby, leader
        standby.expect("standby")
        # The probe is a minute away; the announcement is not.
        standby.expect("elected", leader.tell("stop"), timeout=30)


def test_a_resigned_leader_stays_out_for_its_cooldown(database: str) -> None:
    with cluster(database) as workers:
        leader, heir = workers.start_leader_and_heir()
        resigned = leader.tell("resign")
        heir.expect("elected", resigned)
        assert leader.expect("demoted", resigned)["cause"] == "resigned"
        assert leader.expect("heir", resigned)["at"] - resigned >= 2.0


def test_a_frozen_leader_is_replaced_after_the_lease_and_wakes_up_without_trust(database: str) -> None:
    with cluster(database, "--timing", "fast") as workers:
        leader, heir = workers.start_leader_and_heir()
        frozen = leader.send(signal.SIGSTOP)
        assert heir.expect("elected", frozen)["epoch"] == 2
        woken = leader.send(signal.SIGCONT)
        leader.tell("trust")
        demoted = leader.expect("demoted", woken)
        assert demoted["cause"] == "lease_expired"
        assert leader.expect("trust", woken)["trusted"] is False
        leader.expect("standby", woken)


def test_a_frozen_heir_keeps_nobody_from_following(database: str) -> None:
    with cluster(database, "--timing", "fast") as workers:
        leader, heir = workers.start_leader_and_heir()
        third = workers.start()
        third.expect("standby")
        heir.send(signal.SIGSTOP)
        third.expect("elected", leader.send(signal.SIGKILL))
        woken = heir.send(signal.SIGCONT)
        heir.expect("recovered", woken)
        assert not heir.said("promote")


def test_a_frozen_server_process_demotes_by_the_ticks_own_limit(database: str) -> None:
    with cluster(database) as workers:
        leader, _heir = workers.start_leader_and_heir()
        backend = leader.expect("elected")["backend_pid"]
        os.kill(backend, signal.SIGSTOP)
        frozen = time.monotonic()
        try:
            assert leader.expect("demoted", frozen)["cause"] == "tick_timeout"
        finally:
            os.kill(backend, signal.SIGCONT)


def test_a_cut_off_leader_stops_before_the_server_lets_its_lock_go(
    database: str, postgres: EmbeddedPostgres
) -> None:
    with Proxy(postgres.port) as proxy, cluster(database) as workers:
        leader = Process(database.replace(f":{postgres.port}/", f":{proxy.port}/"))
        workers.workers.append(leader)
        leader.expect("elected")
        heir = workers.start()
        heir.expect("heir")
        cut = time.monotonic()
        proxy.freeze()
        demoted, won = leader.expect("demoted", cut), heir.expect("elected", cut)
        assert demoted["cause"] == "tick_timeout"
        assert demoted["at"] < won["at"]


@pytest.mark.parametrize("mode", ["fast", "immediate", "kill"])
def test_a_restarted_server_is_led_again(own_server: EmbeddedPostgres, mode: str) -> None:
    with cluster(own_server.create_database("labs")) as workers:
        leader, heir = workers.start_leader_and_heir()
        stopped = time.monotonic()
        own_server.restart(mode)
        assert leader.expect("demoted", stopped)["cause"] in {
            "terminated",
            "server_stopped",
            "connection_lost",
        }
        # A session in the queue may be granted the lock by a server that is going down, and lead for a moment.
        assert first_to_win(leader, heir, since=stopped)["epoch"] == 2
        with workers.connect() as connection:
            wait_for(lambda: len(holders(connection)) == 1)


def test_a_crashed_neighbour_in_the_server_costs_one_term(own_server: EmbeddedPostgres) -> None:
    with cluster(own_server.create_database("labs")) as workers:
        leader, heir = workers.start_leader_and_heir()
        with workers.connect() as neighbour:
            crashed = time.monotonic()
            os.kill(neighbour.info.backend_pid, signal.SIGKILL)
            leader.expect("demoted", crashed)
        assert first_to_win(leader, heir, since=crashed)["epoch"] == 2


def test_a_forked_child_gives_its_copy_of_the_socket_up(database: str) -> None:
    # Without a lease only the end of the socket frees the lock, and a child would keep that open.
    with cluster(database, "--no-lease") as workers:
        leader, heir = workers.start_leader_and_heir()
        child = workers.fork(leader, "fork")
        heir.expect("elected", leader.send(signal.SIGKILL))
        os.kill(child, 0)


def test_a_child_that_keeps_the_socket_holds_the_lock_no_longer_than_the_lease(database: str) -> None:
    with cluster(database, "--timing", "fast") as workers:
        leader, heir = workers.start_leader_and_heir()
        child = workers.fork(leader, "cfork")
        heir.expect("elected", leader.send(signal.SIGKILL))
        os.kill(child, 0)


def test_a_fork_does_not_disturb_the_parents_leadership(database: str) -> None:
    with cluster(database, "--timing", "fast") as workers:
        leader, _heir = workers.start_leader_and_heir()
        child = workers.fork(leader, "fork")
        os.kill(child, signal.SIGKILL)
        ticked = time.monotonic()
        while time.monotonic() - ticked < 1.5:
            time.sleep(0.1)
        asked = leader.tell("trust")
        assert leader.expect("trust", asked)["trusted"] is True
        assert not leader.said("demoted")


def test_workers_of_two_databases_on_one_server_do_not_meet(own_server: EmbeddedPostgres) -> None:
    first, second = own_server.create_database("labs"), own_server.create_database("labs_test")
    with cluster(first) as here, cluster(second) as there:
        here.start().expect("elected")
        there.start().expect("elected")


def test_a_worker_started_before_the_migration_leads_after_it(database: str) -> None:
    with Cluster(database) as workers:
        worker = workers.start()
        refused = worker.expect("refused")
        assert refused["detail"].startswith("table argus_sched.leader is missing in database test_")
        assert "argus-sched scheduler migrate" in refused["detail"]
        prepare(database)
        worker.expect("elected")


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def first_to_win(*workers: Process, since: float) -> dict[str, object]:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for worker in workers:
            for event in worker.said("elected"):
                if event["at"] >= since:
                    return event
        time.sleep(0.005)
    raise AssertionError("nobody won")
