"""The whole way once: a real container with a real APScheduler that holds a real lock, and the command."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from argus_sched.agent.instants import rfc3339
from argus_sched.postgres.embedded import EmbeddedPostgres
from tests.integration.docker_host import DockerHost

pytestmark = pytest.mark.docker

PROGRAM = """
import logging, os, signal, threading
import psycopg
from apscheduler.schedulers.background import BackgroundScheduler
logging.basicConfig(level=logging.INFO, format="%(levelname)s:%(name)s:%(message)s")
connection = psycopg.connect(os.environ["DSN"], autocommit=True, application_name="labs-worker")
connection.execute("SELECT pg_advisory_lock(911000001)")
scheduler = BackgroundScheduler(timezone="UTC")
def work(): pass
scheduler.add_job(work, "interval", seconds=1, id="drain", name="Send due scheduled messages")
scheduler.add_job(work, "interval", seconds=1, id="intake", name="Email intake (IMAP \\u2192 tickets)")
def stop_one(*_):
    scheduler.pause_job("drain")
    print("one job is paused", flush=True)
signal.signal(signal.SIGUSR1, stop_one)
scheduler.start()
while True:
    threading.Event().wait(60)
"""

PACK = """\
app: labs
logs:
  docker: {container: labs-backend}
database: {dsn_env: LABS_DATABASE_URL}
checks:
  - kind: scheduler_lock
    key: 911000001
  - kind: scheduler_jobs
    jobs:
      - {id: message_drain, name: "Send due scheduled messages", every: 5m, grace: 5m}
      - {id: desk_email_intake, name: "Email intake (IMAP → tickets)", every: 1d, grace: 1h}
"""
TARGETS = {"labs/message_drain", "labs/desk_email_intake"}


class Site:
    """The application in its container, and the agent outside."""

    def __init__(self, folder: Path, docker: DockerHost, postgres: EmbeddedPostgres, dsn: str) -> None:
        self.docker = docker
        (folder / "labs.yaml").write_text(PACK)
        self.config = folder / "argus.yaml"
        self.config.write_text(f"state: {folder}/state.db\npacks: [labs.yaml]\n")
        self.environ = {**os.environ, "LABS_DATABASE_URL": dsn, "DOCKER_HOST": docker.host}
        inside = f"host={postgres.root} port={postgres.port} user=postgres dbname={dsn.rpartition('/')[2]}"
        mounts = [f"{postgres.root}:{postgres.root}:rw"]
        docker.run_python("labs-backend", PROGRAM, env={"DSN": inside}, mounts=mounts)
        docker.wait_for_log("labs-backend", b'Running job "Email intake')

    def check(self, *arguments: str) -> tuple[int, str]:
        """(exit code, stdout)."""
        command = [sys.executable, "-m", "argus_sched", "check", "--config", str(self.config), *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, env=self.environ, timeout=120, check=False
        )
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout

    def results(self, *arguments: str) -> dict[str, dict[str, Any]]:
        _, out = self.check("--output", "json", *arguments)
        return {result["target"]: result for result in json.loads(out)["results"]}


@pytest.fixture(params=["host", "as_remote"], ids=["json-file", "daemon"])
def site(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    docker_host: DockerHost,
    postgres: EmbeddedPostgres,
    database: str,
) -> Iterator[Site]:
    """A healthy application, read from the daemon's files or through its API."""
    site = Site(tmp_path, docker_host, postgres, database)
    site.environ["DOCKER_HOST"] = getattr(docker_host, request.param)
    yield site
    docker_host.remove("labs-backend")


REPLICA = """
import logging, sys, time
from apscheduler.schedulers.background import BackgroundScheduler
logging.basicConfig(level=logging.INFO)
scheduler = BackgroundScheduler(timezone="UTC")
scheduler.add_job(print, "cron", second="*", name="Send due scheduled messages")
scheduler.start()
time.sleep(600)
"""


@pytest.fixture
def replicas(docker_host: DockerHost) -> Iterator[list[str]]:
    """Five containers of one service that all run the same job."""
    names = [f"replica-{number}" for number in range(5)]
    for name in names:
        docker_host.run_python(name, REPLICA, labels={"app": "labs"})
    for name in names:
        docker_host.wait_for_log(name, b"Running job")
    yield names
    for name in names:
        docker_host.remove(name)


@pytest.mark.parametrize("way", ["host", "as_remote"])
def test_replicas_are_read_side_by_side_and_what_they_do_twice_is_seen(
    tmp_path: Path, docker_host: DockerHost, replicas: list[str], way: str
) -> None:
    pack = tmp_path / "labs.yaml"
    job = '{id: message_drain, name: "Send due scheduled messages", every: 5m}'
    pack.write_text(
        "app: labs\nlogs: {docker: {label: app=labs}}\n"
        f"checks:\n  - kind: scheduler_jobs\n    jobs:\n      - {job}\n"
    )
    config = tmp_path / "argus.yaml"
    config.write_text(f"state: {tmp_path}/state.db\npacks: [labs.yaml]\n")
    command = [sys.executable, "-m", "argus_sched", "check", "--config", str(config), "--output", "json"]
    environ = {**os.environ, "DOCKER_HOST": getattr(docker_host, way)}

    def check() -> tuple[int, dict[str, Any], str]:
        done = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=120, check=False)
        return done.returncode, json.loads(done.stdout), done.stderr

    code, document, err = check()
    (result,) = document["results"]
    assert (code, result["phase"], err) == (1, "double_fire", "")
    assert set(re.findall(r"replica-\d", result["reason"])) == set(replicas)
    assert {source["source"] for source in document["sources"] if source["app"] and source["up"]} == {
        "docker:app=labs",
        *(f"docker:app=labs/{name}" for name in replicas),
        "scheduler-lines",
    }

    docker_host.run_python(replicas[0], REPLICA, labels={"app": "labs"}, driver="none")
    code, document, _ = check()
    assert code == 3
    assert document["results"][0]["phase"] == "double_fire"
    down = [source["source"] for source in document["sources"] if not source["up"]]
    assert down == [f"docker:app=labs/{replicas[0]}"]


def later(length: timedelta) -> str:
    return rfc3339(datetime.now(UTC) + length)


def test_a_real_application_from_good_health_through_each_trouble(site: Site) -> None:
    code, out = site.check()
    assert code == 0, out
    results = site.results()
    assert {results[target]["phase"] for target in TARGETS} == {"fresh"}
    assert results["labs/scheduler_lock"]["holder_application"] == "labs-worker"

    site.docker.kill("labs-backend", "USR1")
    site.docker.wait_for_log("labs-backend", b"one job is paused")
    code, out = site.check("--now", later(timedelta(minutes=10, seconds=30)))
    assert code == 2
    assert re.search(r"CRIT +stale .* labs/message_drain", out)
    assert re.search(r"OK +fresh .* labs/desk_email_intake", out)
    assert "1 CRIT, 2 OK" in out

    gone = site.docker.socket.with_name("away.sock")
    site.docker.socket.rename(gone)
    try:
        code, out = site.check()
        assert code == 3
        assert len(re.findall("UNKNOWN +blind", out)) == 1
        assert "hides 2 checks" in " ".join(out.split())
        results = site.results()
        assert {(results[target]["status"], results[target]["blind_by"]) for target in TARGETS} == {
            ("UNKNOWN", "docker:labs-backend")
        }
        assert results["labs/scheduler_lock"]["status"] == "OK"
    finally:
        gone.rename(site.docker.socket)

    assert site.check()[0] == 0
    site.docker.kill("labs-backend")
    code, out = site.check()
    assert code == 2
    assert re.search(r"CRIT +unheld .* labs/scheduler_lock", out)


def test_a_recreated_container_warms_nothing_up_that_is_known_and_loses_no_history(
    site: Site, database: str
) -> None:
    assert site.check()[0] == 0
    before = site.results()["labs/message_drain"]["last_run"]
    site.docker.run_python("labs-backend", "import time; print('new image', flush=True); time.sleep(600)")
    site.docker.wait_for_log("labs-backend", b"new image")
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(911000001)")
        code, out = site.check()
        assert code == 0, out
        assert site.results()["labs/message_drain"]["last_run"] >= before
