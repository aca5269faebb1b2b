"""The scheduler's commands against a real database and a real worker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.workers.scheduler_cluster import ROOT, until

MODULE = """
import os
from argus_sched import Scheduler, Timing, every

scheduler = Scheduler(os.environ["ARGUS_SCHEDULER_DSN"], namespace="shop", timing=Timing.fast())

@scheduler.job(every(seconds=1), id="tick", name="Tick")
def tick(): ...

@scheduler.job(every(seconds=1), id="bad", name="Bad")
def bad():
    raise ValueError("no")
"""


class Shell:
    """Runs commands beside a module that declares jobs."""

    def __init__(self, folder: Path, dsn: str) -> None:
        self.folder = folder
        (folder / "shop_jobs.py").write_text(MODULE)
        self.environment = {**os.environ, "PYTHONPATH": str(ROOT), "ARGUS_SCHEDULER_DSN": dsn}

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "argus_sched", "scheduler", *arguments]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def rows(self, *arguments: str) -> list[dict[str, Any]]:
        done = self.run(*arguments, "--output", "json")
        assert done.stderr == ""
        found: list[dict[str, Any]] = json.loads(done.stdout)
        return found


@pytest.fixture
def shell(database: str, tmp_path: Path) -> Shell:
    return Shell(tmp_path, database)


@pytest.fixture
def worker(shell: Shell) -> Iterator[subprocess.Popen[bytes]]:
    assert shell.run("migrate").returncode == 0
    command = shell.command("run", "shop_jobs:scheduler")
    with (shell.folder / "worker.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=shell.folder, env=shell.environment, stdout=log, stderr=log)
    yield process
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0


def test_migrate_says_what_it_did_and_does_it_once(shell: Shell) -> None:
    first, second = shell.run("migrate"), shell.run("migrate")
    assert first.stdout.splitlines()[:2] == ["applied 0001_leader", "applied 0002_fires"]
    assert second.stdout == "the tables are up to date\n"
    assert (first.returncode, second.returncode) == (0, 0)


def test_before_anything_ran_there_is_nothing_on_record(shell: Shell) -> None:
    shell.run("migrate")
    assert shell.run("jobs").stdout == "nothing on record\n"
    assert shell.run("runs").stdout == "nothing on record\n"
    nobody = shell.run("leader")
    assert (nobody.stdout, nobody.returncode) == ("nothing on record\n", 2)
    refused = shell.run("resign", "--namespace", "shop")
    assert refused.returncode == 3
    assert "namespace 'shop' has no leader that can be asked" in refused.stderr


def test_a_worker_is_seen_from_outside(shell: Shell, worker: subprocess.Popen[bytes]) -> None:
    until("runs", lambda: shell.rows("runs", "--job", "tick", "--outcome", "success"))
    ((leader),) = shell.rows("leader")
    assert (leader["namespace"], leader["pid"], leader["holds"]) == ("shop", worker.pid, True)
    assert shell.run("leader").returncode == 0
    assert {job["job_id"]: job["state"] for job in shell.rows("jobs", "--namespace", "shop")}["tick"] == "on"
    assert shell.rows("jobs", "--namespace", "other") == []
    until("the bad job is off", lambda: "off, by scheduler: ValueError: no" in shell.run("jobs").stdout)
    errors = shell.rows("runs", "--outcome", "error", "--limit", "2")
    assert {row["error"] for row in errors} == {"ValueError: no"}
    assert len(errors) == 2
    asked = shell.run("resign", "--namespace", "shop", "--cooldown", "2")
    assert f":{worker.pid} to let another worker lead for 2 s" in asked.stdout
    until("it resigned", lambda: "Scheduler demoted: resigned" in (shell.folder / "worker.log").read_text())
    until("it leads again", lambda: shell.rows("leader")[0]["epoch"] == 2)
