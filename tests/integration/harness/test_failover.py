"""One fault by hand against a running application: real workers, whose lock the command finds by itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from argus_sched.advisory_keys import LEADER
from argus_sched.errors import SettingsError, SourceError
from argus_sched.harness import arena
from argus_sched.harness.failover import fail_over
from argus_sched.harness.faults import Ground
from argus_sched.harness.settings import RunSettings
from argus_sched.postgres.embedded import EmbeddedPostgres

PATIENCE = 120.0
CAN_DROP_PACKETS = os.geteuid() == 0 and shutil.which("iptables") is not None


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    with arena.set_up(RunSettings(jobs=2, profile="fast"), tmp_path_factory.mktemp("run")) as running:
        running.cluster.start()
        yield running


@pytest.fixture
def dsn(ground: Ground) -> str:
    """The DSN of the application, once a leader leads and an heir waits."""
    cluster = ground.cluster
    cluster.look()
    for slot in cluster.slots.values():
        if slot.process is not None and slot.process.poll() is not None:
            cluster.spawn(slot)
    cluster.wait_until(
        lambda: cluster.complete() and cluster.in_role("heir") is not None, PATIENCE, "no heir"
    )
    return ground.database.dsn(arena.DATABASE)


@pytest.mark.parametrize(
    ("fault", "does"),
    [
        ("terminate", "pg_terminate_backend("),
        ("kill", "kill -9 "),
        ("freeze", "SIGCONT to process "),
        pytest.param(
            "partition",
            "packets pass again",
            marks=pytest.mark.skipif(not CAN_DROP_PACKETS, reason="needs root and iptables"),
        ),
    ],
)
def test_another_session_takes_over_and_the_timeline_says_when(dsn: str, fault: str, does: str) -> None:
    told: list[str] = []
    assert fail_over(dsn, LEADER.number, fault, PATIENCE, told.append)
    text = "\n".join(told)
    assert "(scheduler-leader:" in told[0]
    assert does in text
    assert "another session leads" in text
    assert "ms after the fault" in text


@pytest.mark.skipif(not CAN_DROP_PACKETS, reason="needs root and iptables")
def test_a_partition_leaves_no_rule_behind() -> None:
    rules = subprocess.run(["iptables", "-S"], capture_output=True, text=True, check=True).stdout
    assert "DROP" not in [word for line in rules.splitlines() if "--dport" in line for word in line.split()]


def test_a_key_that_nobody_holds_is_told(dsn: str) -> None:
    with pytest.raises(SourceError, match="nobody holds the lock 5 in this database"):
        fail_over(dsn, 5, "terminate", 1.0, print)


def test_a_holder_that_is_no_process_of_ours_is_not_signalled(dsn: str, database: str) -> None:
    import psycopg

    with psycopg.connect(database, autocommit=True, application_name="scheduler-leader:1") as other:
        other.execute("SELECT pg_advisory_lock(5)")
        # Process 1 exists, but the session's socket is not its own.
        with pytest.raises(SettingsError, match="does not belong to a process of this machine"):
            fail_over(database, 5, "kill", 1.0, print)


@pytest.mark.parametrize(
    ("dsn_of_it", "key", "seconds", "says"),
    [
        (" ", 5, 1.0, "--dsn is empty"),
        (None, 2**63, 1.0, "is no lock of Postgres"),
        (None, 5, float("nan"), "is no time to wait"),
        (None, 5, -1.0, "is no time to wait"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_touched(
    dsn: str, dsn_of_it: str | None, key: int, seconds: float, says: str
) -> None:
    with pytest.raises(SettingsError, match=says):
        fail_over(dsn_of_it or dsn, key, "terminate", seconds, print)


@pytest.mark.parametrize(
    ("fault", "says"), [("terminate", "pg_signal_backend"), ("kill", "pg_read_all_stats")]
)
def test_a_role_without_the_rights_is_told(dsn: str, fault: str, says: str) -> None:
    import psycopg

    with psycopg.connect(dsn, autocommit=True) as owner:
        owner.execute("DROP ROLE IF EXISTS nobody_special")
        owner.execute("CREATE ROLE nobody_special LOGIN")
    with pytest.raises((SettingsError, SourceError), match=says):
        fail_over(dsn.replace("postgres@", "nobody_special@"), LEADER.number, fault, 1.0, print)


def test_a_session_on_a_unix_socket_does_not_name_its_process(
    database: str, postgres: EmbeddedPostgres
) -> None:
    import psycopg

    inside = database.replace("127.0.0.1", str(postgres.root).replace("/", "%2F"))
    # A process of that number is here, and is not the one that came through the socket from a container.
    with psycopg.connect(
        inside, autocommit=True, application_name=f"scheduler-leader:{os.getpid()}"
    ) as other:
        other.execute("SELECT pg_advisory_lock(5)")
        with pytest.raises(SettingsError, match="does not tell its process"):
            fail_over(database, 5, "kill", 1.0, print)


def test_a_frozen_leader_is_woken_when_the_command_is_killed(dsn: str, ground: Ground) -> None:
    command = [sys.executable, "-m", "argus_sched", "harness", "failover", "--freeze", "--dsn", dsn]
    leader = ground.leader()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert any("SIGSTOP" in line for line in running.stdout)
        ground.cluster.wait_until(lambda: state_of(leader.pid) == "T", PATIENCE, "it was not frozen")
        running.kill()
    ground.cluster.wait_until(lambda: state_of(leader.pid) != "T", PATIENCE, "it was not woken")


def state_of(pid: int) -> str:
    """The state of a process as the kernel names it: T is stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
