"""One run at a time on one state file: a file lock that dies with its process and says who holds it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from argus_sched.agent.store.new_file import make_sure_of
from argus_sched.clock import Clock
from argus_sched.errors import StoreError

PAUSE_SECONDS = 0.05


class StoreBusyError(StoreError):
    """Another run has held the state file for the whole wait."""


@contextlib.contextmanager
def run_lock(state: Path, wait_seconds: float, clock: Clock) -> Iterator[None]:
    """Hold `<state>.lock` meanwhile; its text is the holder's pid.

    Raises StoreBusyError, which names that pid, when another process still has it after `wait_seconds`, and
    StoreError when the lock file cannot be made.
    """
    path = state.with_name(f"{state.name}.lock")
    try:
        make_sure_of(path)
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise StoreError(f"the lock file {path} cannot be opened: {error.strerror}") from error
    try:
        _acquire(descriptor, path, wait_seconds, clock)
        _sign(descriptor)
        yield
    finally:
        os.close(descriptor)  # which gives the lock back


def _acquire(descriptor: int, path: Path, wait_seconds: float, clock: Clock) -> None:
    finish = clock.elapsed() + wait_seconds
    never = threading.Event()
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if clock.elapsed() >= finish:
                holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip() or "unknown"
                raise StoreBusyError(
                    f"another run (pid {holder}) has held {path} for more than {wait_seconds:g} s: "
                    "let it finish, or end it"
                ) from None
            clock.wait(never, PAUSE_SECONDS)


def _sign(descriptor: int) -> None:
    # A full disk must not keep the pass from running; only the message to the next one is poorer.
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
