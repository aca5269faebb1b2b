"""What a worker writes down about itself, so that it survives kill -9: each line is one write to a file."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from argus_sched.clock import Clock
from argus_sched.harness.history import Belief, Born, Event, to_line

CANNOT_WRITE = 74  # EX_IOERR of sysexits.h, as the exit code of a worker


class Lines:
    """A file that several processes append whole lines to."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def write(self, event: Event) -> None:
        """Append one event in one write, which no other can tear.

        Ends this process where the disk does not take it: without its log nothing can be judged.
        """
        line = to_line(event).encode()
        try:
            whole = os.write(self._file, line) == len(line)
        except OSError:
            whole = False
        if not whole:
            os._exit(CANNOT_WRITE)


class Diary:
    """Writes down what this worker believes, whenever that changes, from its birth on."""

    def __init__(self, name: str, lines: Lines, clock: Clock) -> None:
        self._name = name
        self._lines = lines
        self._clock = clock
        self._last: tuple[str, int, float | None] | None = None
        self._born = False
        self._lock = threading.Lock()

    def begin(self, born: Born) -> None:
        """Write the first line; beliefs from before it are not kept."""
        with self._lock:
            self._lines.write(born)
            self._born = True

    def note(self, role: str, epoch: int, trusted_until: float | None, cause: str = "") -> None:
        """Keep a belief that differs from the last; `trusted_until` in elapsed seconds, None for ever."""
        with self._lock:
            if not self._born or (role, epoch, trusted_until) == self._last:
                return
            self._last = role, epoch, trusted_until
            at = time.time()
            until = None if trusted_until is None else at + trusted_until - self._clock.elapsed()
            self._lines.write(Belief(at, self._name, role, epoch, until, cause))
