"""An event that a poll on file descriptors can wait for too."""

from __future__ import annotations

import contextlib
import os
import threading


class WakeUp(threading.Event):
    """A `threading.Event` whose `fileno()` is readable while it is set (Linux eventfd)."""

    def __init__(self) -> None:
        super().__init__()
        self._descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def fileno(self) -> int:
        """The descriptor to poll for reading."""
        return self._descriptor

    def set(self) -> None:
        super().set()
        os.eventfd_write(self._descriptor, 1)

    def clear(self) -> None:
        # The descriptor first: a `set` between the two leaves it readable, which costs one idle round.
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._descriptor)
        super().clear()

    def __del__(self) -> None:
        os.close(self._descriptor)
