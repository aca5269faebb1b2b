"""SIGTERM as something a process can wait for without missing it."""

from __future__ import annotations

import os
import select
import signal


class StopRequest:
    """Comes with SIGTERM; make it in the main thread.

    The kernel may hand a signal to any thread, while Python runs its handler in the main thread only. Waiting
    on a lock there would sleep on, and an event's own lock cannot be taken by a handler that interrupts its
    holder; so the wait is on a descriptor that every signal writes to.
    """

    def __init__(self) -> None:
        self.came = False
        self._awake, written = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(written, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._come)

    def wait(self) -> None:
        """Return once it came."""
        while not self.came:
            select.select([self._awake], [], [])
            os.read(self._awake, 4096)

    def _come(self, *_: object) -> None:
        self.came = True
