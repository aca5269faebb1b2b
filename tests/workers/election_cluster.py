"""Real workers against a real Postgres, for the tests and the benchmark of the election."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg

from argus_sched.advisory_keys import LEADER, halves

Event = dict[str, Any]
Connection = psycopg.Connection[tuple[Any, ...]]

SCRIPT = Path(__file__).with_name("elector_worker.py")
PATIENCE = 60.0  # only ever waited out when something is broken


def prepare(dsn: str) -> None:
    """Create the table that the election needs."""
    table = resources.files("argus_sched.postgres") / "migrations" / "0001_leader.sql"
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA IF NOT EXISTS argus_sched")
        connection.execute(table.read_bytes())


def holders(connection: Connection, key: int = LEADER.number) -> list[int]:
    """The server processes that hold `key` in the connection's own database."""
    rows = connection.execute(_HOLDERS, halves(key)).fetchall()
    return [pid for (pid,) in rows]


_HOLDERS = """
SELECT DISTINCT pid FROM pg_locks
 WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
   AND classid = %s::bigint::oid AND objid = %s::bigint::oid AND objsubid = 1
   AND granted AND mode = 'ExclusiveLock'
"""


class Process:
    """One worker process and everything it said so far."""

    def __init__(self, dsn: str, *options: str) -> None:
        command = [sys.executable, str(SCRIPT), "--dsn", dsn, *options]
        environment = {**os.environ, "PYTHONPATH": str(SCRIPT.parents[2])}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
        )
        self.pid = self._process.pid
        self.events: list[Event] = []
        self._heard = threading.Condition()
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()

    def _listen(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            with self._heard:
                self.events.append(json.loads(line))
                self._heard.notify_all()

    def expect(self, event: str, since: float = 0.0, timeout: float = PATIENCE) -> Event:
        """The first such event not older than `since` (CLOCK_MONOTONIC), waited for."""

        def find() -> Event | None:
            return next((e for e in self.events if e["event"] == event and e["at"] >= since), None)

        with self._heard:
            found = self._heard.wait_for(find, timeout)
        assert found, f"worker {self.pid} said no {event!r} within {timeout:g} s, only {self.events}"
        return found

    def said(self, event: str) -> list[Event]:
        with self._heard:
            return [e for e in self.events if e["event"] == event]

    def lines(self) -> list[str]:
        return [event["line"] for event in self.said("log")]

    def tell(self, word: str) -> float:
        """Send a command; the moment it was sent."""
        assert self._process.stdin
        at = time.monotonic()
        self._process.stdin.write(word + "\n")
        self._process.stdin.flush()
        return at

    def send(self, number: signal.Signals) -> float:
        """Send a signal; the moment it was sent."""
        at = time.monotonic()
        os.kill(self.pid, number)
        return at

    def is_running(self) -> bool:
        return self._process.poll() is None

    def end(self) -> None:
        if self.is_running():
            self._process.kill()
        self._process.wait()
        self._reader.join(PATIENCE)
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                if pipe:
                    pipe.close()


class Cluster:
    """Workers on one database, and a sampler of how many sessions hold the lock."""

    def __init__(self, dsn: str, *options: str, key: int = LEADER.number) -> None:
        self.dsn = dsn
        self.key = key
        self.options = (*options, "--key", str(key))
        self.workers: list[Process] = []
        self.children: list[int] = []
        self.most_holders = 0
        self._sampling, self._done = threading.Event(), threading.Event()
        self._sampler = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Self:
        self._sampler.start()
        assert self._sampling.wait(PATIENCE), "the holders of the lock are not being counted"
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._done.set()
        self._sampler.join(PATIENCE)
        # Children first: they keep the pipes of their parents open.
        for child in self.children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        for worker in self.workers:
            worker.end()

    def start(self, *options: str) -> Process:
        worker = Process(self.dsn, *self.options, *options)
        self.workers.append(worker)
        return worker

    def start_leader_and_heir(self) -> tuple[Process, Process]:
        leader = self.start()
        leader.expect("elected")
        heir = self.start()
        heir.expect("heir")
        return leader, heir

    def connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(self.dsn, autocommit=True)

    def fork(self, worker: Process, how: str) -> int:
        worker.tell(how)
        child: int = worker.expect("forked")["child"]
        self.children.append(child)
        return child

    def _sample(self) -> None:
        while not self._done.is_set():
            with contextlib.suppress(psycopg.Error), self.connect() as connection:
                self._sample_with(connection)
            self._done.wait(0.02)

    def _sample_with(self, connection: Connection) -> None:
        while not self._done.wait(0.005):
            self.most_holders = max(self.most_holders, len(holders(connection, self.key)))
            self._sampling.set()


@contextlib.contextmanager
def cluster(dsn: str, *options: str, key: int = LEADER.number) -> Iterator[Cluster]:
    """Workers that at no sampled moment had two sessions holding the lock; checked at the end."""
    prepare(dsn)
    with Cluster(dsn, *options, key=key) as workers:
        yield workers
    assert workers.most_holders <= 1
