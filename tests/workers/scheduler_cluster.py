"""Real scheduler processes over one database, and a look at what they did from the outside."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

ROOT = Path(__file__).parents[2]
WORKER = Path(__file__).with_name("scheduler_worker.py")
PATIENCE = 60.0

HOLDERS = """
SELECT count(DISTINCT pid) FROM pg_locks
WHERE locktype = 'advisory' AND granted AND objsubid = 1 AND classid = 0 AND objid = 911000001
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


def until(what: str, probe: Callable[[], Any], patience: float = PATIENCE) -> Any:
    """Wait until `probe` returns something true, and return it."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        found = probe()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"{what} did not happen within {patience:g} s")


@dataclass
class Cluster:
    """Workers that share a database, a list of jobs and a file of side effects."""

    dsn: str
    folder: Path
    jobs: list[dict[str, Any]]
    options: dict[str, Any] = field(default_factory=dict)
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, count: int = 1, **options: Any) -> list[subprocess.Popen[bytes]]:
        """Start `count` more workers."""
        config = self.folder / f"config{len(self.workers)}.json"
        settings = {
            "dsn": self.dsn,
            "effects": str(self.effects_path),
            "jobs": self.jobs,
            "options": {"timing": "fast", "migrate": True, **self.options, **options},
        }
        config.write_text(json.dumps(settings))
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        started = []
        for _ in range(count):
            command = [sys.executable, str(WORKER), str(config)]
            with (self.folder / f"worker{len(self.workers)}.log").open("wb") as log:
                worker = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
            self.workers.append(worker)
            started.append(worker)
        return started

    @property
    def effects_path(self) -> Path:
        return self.folder / "effects.jsonl"

    def effects(self, what: str | None = None) -> list[dict[str, Any]]:
        """What the workers wrote, oldest first."""
        if not self.effects_path.exists():
            return []
        lines = [json.loads(line) for line in self.effects_path.read_text().splitlines()]
        return [line for line in lines if what in (None, line["what"])]

    def logs(self) -> str:
        """All that the workers logged."""
        return "\n".join(path.read_text() for path in sorted(self.folder.glob("worker*.log")))

    def ask(self, query: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Rows from the database; none while it is away."""
        with (
            contextlib.suppress(psycopg.Error),
            psycopg.connect(self.dsn, autocommit=True, connect_timeout=2) as connection,
        ):
            return connection.execute(query.encode(), parameters).fetchall()
        return []

    def leader(self, *, other_than: int = 0) -> int:
        """The pid of the process that leads, once one does and has run something."""
        return int(until("a leader that fires", lambda: self._leader(other_than)))

    def _leader(self, other_than: int) -> int:
        for run in reversed(self.effects("run")):
            if run["pid"] != other_than and time.time() - run["at"] < 3:
                return int(run["pid"])
        return 0

    def wait_for_runs(self, more: int, job: str | None = None) -> None:
        """Wait until the workers ran `more` jobs than until now."""
        before = self.count(job)
        until(f"{more} more runs", lambda: self.count(job) >= before + more)

    def count(self, job: str | None = None) -> int:
        return sum(job in (None, run["job"]) for run in self.effects("run"))

    def terminate_leader_session(self) -> int:
        """pg_terminate_backend of the session that holds the lock; the number of sessions ended."""
        query = HOLDERS.replace("count(DISTINCT pid)", "count(pg_terminate_backend(pid))")
        return int(self.ask(query)[0][0])

    def holders(self) -> int:
        """How many sessions hold the lock; -1 while the database is away."""
        rows = self.ask(HOLDERS)
        return int(rows[0][0]) if rows else -1

    def stop(self) -> None:
        """Stop every worker cleanly, kill what does not obey."""
        for worker in self.workers:
            if worker.poll() is None:
                worker.send_signal(signal.SIGCONT)
                worker.send_signal(signal.SIGTERM)
        for worker in self.workers:
            try:
                worker.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                worker.kill()

    def judge(self) -> Judgement:
        """What was due between the first and the last run, against what ran and what is on record."""
        return judge(self.effects("run"), self.outcomes(), self.jobs)

    def outcomes(self) -> dict[tuple[str, int], str]:
        """The outcome on record of each scheduled fire, by job and due time in milliseconds."""
        rows = self.ask("SELECT job_id, due, outcome FROM argus_sched.run WHERE origin = 'schedule'")
        return {(job, round(due.timestamp() * 1000)): outcome for job, due, outcome in rows}


@dataclass(frozen=True)
class Judgement:
    """Fires that ran twice at one attempt, that are on no record, and that were interrupted."""

    doubled: list[tuple[str, int]]
    lost: list[tuple[str, int]]
    interrupted: list[tuple[str, int]]
    total: int


def judge(
    runs: list[dict[str, Any]], outcomes: dict[tuple[str, int], str], jobs: list[dict[str, Any]]
) -> Judgement:
    """Enumerate what was due by arithmetic of this module's own, and compare."""
    ran = Counter(
        (run["job"], round(run["due"] * 1000), run["attempt"]) for run in runs if run["origin"] == "schedule"
    )
    seen = {(job, due) for job, due, _ in ran}
    interrupted = sorted(key for key, outcome in outcomes.items() if outcome == "interrupted")
    lost, total = [], 0
    for job in jobs:
        step = round(job["every"] * 1000)
        dues = [due for name, due in seen if name == job["id"]]
        if dues:
            expected = range(min(dues), max(dues) + 1, step)
            total += len(expected)
            lost += [
                (job["id"], due)
                for due in expected
                if (job["id"], due) not in seen and outcomes.get((job["id"], due)) != "interrupted"
            ]
    doubled = sorted((job, due) for (job, due, _), count in ran.items() if count > 1)
    return Judgement(doubled, lost, interrupted, total)


@contextlib.contextmanager
def sampling_holders(cluster: Cluster) -> Iterator[list[int]]:
    """Sample how many sessions hold the lock while the body runs."""
    import threading

    seen: list[int] = []
    stop = threading.Event()

    def sample() -> None:
        while not stop.wait(0.02):
            seen.append(cluster.holders())

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        thread.join()
