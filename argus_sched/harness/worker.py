"""One worker of a run: an ordinary application of the scheduler whose jobs write down that they ran.

    python -m argus_sched.harness.worker 1      one plain process
    python -m argus_sched.harness.worker 2      a uvicorn parent with two workers, each with a scheduler

What it writes survives kill -9, since each line is one write to a file: the runs of all workers to
`effects.jsonl`, what it believes to a file of its own. SIGUSR1 makes it fork a child that keeps its sockets,
SIGUSR2 makes it read its clock's error anew.
"""

from __future__ import annotations

import os
import threading
import time
from datetime import datetime, timedelta
from pathlib import Path

from argus_sched.clock import SystemClock
from argus_sched.harness.history import Belief, Event, Service, to_line

PR_SET_PDEATHSIG = 1
SAMPLE = 0.05


class SteppedClock(SystemClock):
    """The machine's clock, wrong by `ahead` seconds; the clock that counts elapsed time cannot be stepped."""

    def __init__(self) -> None:
        self.ahead = timedelta(0)

    def now(self) -> datetime:
        return super().now() + self.ahead


class Lines:
    """A file that several processes append whole lines to."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def write(self, event: Event) -> None:
        """Append one event in one write, which no other can tear."""
        os.write(self._file, to_line(event).encode())


class Diary:
    """Writes down what this worker believes, whenever that changes."""

    def __init__(self, name: str, lines: Lines, clock: SystemClock) -> None:
        self._name = name
        self._lines = lines
        self._clock = clock
        self._last: tuple[str, int, float | None] = ("", 0, None)
        self._lock = threading.Lock()

    def note(self, role: str, epoch: int, trusted_until: float | None, cause: str = "") -> None:
        """Keep a belief that differs from the last; `trusted_until` in elapsed seconds, None for ever."""
        with self._lock:
            if (role, epoch, trusted_until) == self._last:
                return
            self._last = role, epoch, trusted_until
            at = time.time()
            until = None if trusted_until is None else at + trusted_until - self._clock.elapsed()
            self._lines.write(Belief(at, self._name, role, epoch, until, cause))


class LeaderService:
    """A leader-only service that does nothing but say when it runs."""

    def __init__(self, name: str, lines: Lines) -> None:
        self._name = name
        self._lines = lines

    def start(self) -> None:
        self._lines.write(Service(time.time(), self._name, True))

    def stop(self) -> None:
        self._lines.write(Service(time.time(), self._name, False))
