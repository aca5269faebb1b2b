"""The specification's acceptance checks on uvicorn with two workers: 3, 4, 5 and 11.

With `Timing.recipe()` its queries hold to the letter. By default one standby queues for the lock, which
pg_locks shows as a row that is not granted, so there they ask for granted rows.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from argus_sched.postgres.embedded import free_port
from tests.workers.scheduler_cluster import ROOT, until

pytestmark = pytest.mark.slow

LOCK = """
FROM pg_locks WHERE locktype = 'advisory' AND objid = 911000001
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
PROFILES = {"default": "AND granted", "recipe": ""}
ACQUIRED = re.compile(
    r"Scheduler singleton lock acquired \(key=911000001\)|Scheduler failover: acquired singleton lock"
)


class Server:
    """uvicorn with two workers over one database."""

    def __init__(self, dsn: str, folder: Path, timing: str = "default") -> None:
        self.timing, self._granted = timing, PROFILES[timing]
        self.dsn, self.port, self.folder = dsn, free_port(), folder
        self.log_path, self.effects_path = folder / "uvicorn.log", folder / "effects.jsonl"
        arguments = ["--workers", "2", "--port", str(self.port), "--host", "127.0.0.1"]
        command = [sys.executable, "-m", "uvicorn", "tests.workers.web_app:app", *arguments]
        settings = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "ARGUS_TEST_DSN": dsn,
            "ARGUS_TEST_EFFECTS": str(self.effects_path),
            "ARGUS_TEST_TIMING": timing,
        }
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(command, cwd=ROOT, env=settings, stdout=log, stderr=log)

    @property
    def log(self) -> str:
        return self.log_path.read_text()

    def effects(self) -> list[dict[str, Any]]:
        if not self.effects_path.exists():
            return []
        return [json.loads(line) for line in self.effects_path.read_text().splitlines()]

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            return connection.execute(query.encode()).fetchall()

    def keys(self) -> list[int]:
        """What check 4 shows."""
        return [int(objid) for (objid,) in self.ask(f"SELECT objid {LOCK} {self._granted}")]

    def holder(self) -> tuple[Any, ...]:
        """What check 11 shows: backend, name and state of the holder's session; empty without a holder."""
        pid = f"SELECT pid {LOCK} {self._granted}"
        rows = self.ask(f"SELECT pid, application_name, state FROM pg_stat_activity WHERE pid = ({pid})")
        return rows[0] if rows else ()

    def leader(self) -> int:
        """The operating system's pid of the holder, from the name of its session."""

        def named() -> re.Match[str] | None:
            found = self.holder()
            return re.fullmatch(r"scheduler-leader:(\d+)", found[1]) if found else None

        return int(until("a holder with its name", named).group(1))

    def status(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/status", timeout=30) as answer:
            found: dict[str, Any] = json.load(answer)
            return found

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)


@pytest.fixture(params=PROFILES)
def server(database: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Server]:
    one = Server(database, tmp_path, request.param)
    yield one
    one.stop()


def wait_for_runs(server: Server, more: int) -> None:
    before = len(server.effects())
    until(f"{more} more runs", lambda: len(server.effects()) >= before + more)


def doubled(server: Server) -> list[float]:
    counts = Counter(effect["due"] for effect in server.effects())
    return [due for due, count in counts.items() if count > 1]


def missing(server: Server) -> list[float]:
    dues = {effect["due"] for effect in server.effects()}
    return sorted(set(range(int(min(dues)), int(max(dues)) + 1)) - dues)


def test_one_worker_leads_one_stands_by_and_the_lock_goes_with_the_server(server: Server) -> None:
    leader = server.leader()
    wait_for_runs(server, 3)
    until("a standby", lambda: "Scheduler standby: singleton failover probe started" in server.log)
    # Check 3: exactly one of each line.
    assert len(ACQUIRED.findall(server.log)) == 1
    retry = {"default": "1s", "recipe": "60s"}[server.timing]
    assert server.log.count(f"Scheduler standby: singleton failover probe started (retry every {retry})") == 1
    # Check 4: the key once while the application runs, and not at all after.
    assert server.keys() == [911000001]
    # Check 11, first half: the holder is idle and names its process.
    idle = (f"scheduler-leader:{leader}", "idle")
    until("an idle holder", lambda: server.holder()[1:] == idle)
    assert {effect["pid"] for effect in server.effects()} == {leader}
    answers = [server.status() for _ in range(20)]
    assert all(answer["jobs"] == ["Count the seconds"] for answer in answers)
    assert all((answer["role"] == "leader") == (answer["pid"] == leader) for answer in answers)
    server.stop()
    assert server.keys() == []
    assert re.search(
        r'Running job "Count the seconds \(trigger: interval\[0:00:01\], next run at: ', server.log
    )


def test_a_killed_leader_is_replaced_though_its_worker_is_respawned(server: Server) -> None:
    # Check 5.
    leader = server.leader()
    wait_for_runs(server, 3)
    counts: list[int] = []
    os.kill(leader, signal.SIGKILL)

    def taken_over() -> bool:
        counts.append(len(server.keys()))
        return any(effect["pid"] != leader for effect in server.effects())

    # A standby of the recipe probes once a minute.
    until("a successor that fires", taken_over, 240)
    successor = server.leader()
    assert successor != leader
    assert max(counts) == 1
    assert len(ACQUIRED.findall(server.log)) == 2
    assert Path(f"/proc/{successor}").exists()
    wait_for_runs(server, 3)
    assert doubled(server) == []
    interrupted = server.ask(
        "SELECT count(*) FROM argus_sched.run WHERE outcome IN ('running', 'interrupted')"
    )
    assert len(missing(server)) <= interrupted[0][0] <= 2


def test_a_terminated_holder_says_so_before_the_next_leader_fires(server: Server) -> None:
    # Check 11, second half.
    leader = server.leader()
    until("a standby", lambda: "Scheduler standby: singleton failover probe started" in server.log)
    wait_for_runs(server, 3)
    backend, _, _ = server.holder()
    terminated_at = time.time()
    server.ask(f"SELECT pg_terminate_backend({backend})")
    counts: list[int] = []

    def demoted() -> bool:
        counts.append(len(server.keys()))
        return "Scheduler demoted: terminated" in server.log

    until("the demotion", demoted, patience=15)
    wait_for_runs(server, 3)
    counts.append(len(server.keys()))
    assert max(counts) == 1
    assert doubled(server) == []
    assert missing(server) == []
    later = [effect for effect in server.effects() if effect["at"] > terminated_at]
    # The old leader may win again, with a new session; one of them leads, and fires.
    assert {effect["pid"] for effect in later} <= {leader, server.leader()}


def test_the_application_serves_though_its_database_is_away(tmp_path: Path) -> None:
    server = Server(f"postgresql://postgres@127.0.0.1:{free_port()}/nowhere", tmp_path)
    try:

        def answers() -> dict[str, Any] | None:
            try:
                return server.status()
            except OSError:
                return None

        found = until("an answer of the application", answers)
        assert found["role"] == "standby"
        told = until("a reason", lambda: server.status()["problem"])
        assert "cannot be reached" in told
        assert server.effects() == []
    finally:
        server.stop()
    assert server.process.returncode == 0
