"""The specification's Redis mode with real workers: each schedules, claims keep them apart, no Postgres."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from argus_sched.postgres.embedded import free_port
from tests.workers.scheduler_cluster import Cluster, until

pytestmark = [pytest.mark.redis, pytest.mark.slow]

JOBS = [{"id": "tick", "every": 1, "catch_up": "all", "name": "Tick"}]


class Redis:
    """A redis-server of the test's own, that keeps what it holds over a restart."""

    def __init__(self, folder: Path) -> None:
        program = shutil.which("redis-server")
        if program is None:
            pytest.skip("redis-server is not installed")
        self.port = free_port()
        options = [
            "--port",
            str(self.port),
            "--bind",
            "127.0.0.1",
            "--dir",
            str(folder),
            "--appendonly",
            "yes",
        ]
        self._command = [program, *options, "--appendfsync", "always"]
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)
        ping = ["redis-cli", "-p", str(self.port), "ping"]
        until(
            "redis answers", lambda: b"PONG" in subprocess.run(ping, capture_output=True, check=False).stdout
        )

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    server = Redis(tmp_path)
    yield server
    server.stop()


@pytest.fixture
def cluster(redis: Redis, tmp_path: Path) -> Iterator[Cluster]:
    options = {
        "coordination": "every_worker",
        "claims": "redis",
        "redis_url": f"redis://127.0.0.1:{redis.port}/0",
        "migrate": False,
    }
    one = Cluster("", tmp_path, JOBS, options)
    yield one
    one.stop()


def check(cluster: Cluster, interrupted: int = 0) -> None:
    """No due time ran twice, and at most `interrupted` of those between the first and the last did not run."""
    dues = Counter(round(run["due"]) for run in cluster.effects("run"))
    assert [due for due, count in dues.items() if count > 1] == []
    assert len(set(range(min(dues), max(dues) + 1)) - set(dues)) <= interrupted


def test_each_due_time_runs_on_one_worker_though_one_is_killed(cluster: Cluster) -> None:
    first, *_ = cluster.start(3)
    cluster.wait_for_runs(4)
    os.kill(first.pid, signal.SIGKILL)
    cluster.wait_for_runs(6)
    cluster.stop()
    check(cluster, interrupted=1)


def test_while_redis_is_away_nothing_runs_and_afterwards_all_is_caught_up(
    cluster: Cluster, redis: Redis
) -> None:
    cluster.start(2)
    cluster.wait_for_runs(3)
    redis.stop()
    time.sleep(0.5)  # what was under way ends
    before = cluster.count()
    time.sleep(3)  # the fault itself: three due times pass
    assert cluster.count() == before
    redis.start()
    cluster.wait_for_runs(6)
    cluster.stop()
    check(cluster)
