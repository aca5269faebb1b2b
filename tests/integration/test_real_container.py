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
