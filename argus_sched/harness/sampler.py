"""Who holds the lock, asked of the database all the time, and kept whenever the answer changes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from argus_sched.harness.history import Event, Holders

EVERY = 0.02
AT_LEAST_EVERY = 1.0


class Sampler:
    """A thread that asks `holders` every 20 ms. Use it as a context manager."""

    def __init__(self, holders: Callable[[], tuple[int, ...] | None], keep: Callable[[Event], None]) -> None:
        self.samples = 0
        self._holders = holders
        self._keep = keep
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="holder-samples", daemon=True)
        self._last: Holders | None = None

    def look(self) -> None:
        """One sample; it is kept when it differs from the last one kept, or a second has passed."""
        sample = Holders(time.time(), self._holders())
        self.samples += 1
        last = self._last
        if last is None or sample.pids != last.pids or sample.at - last.at >= AT_LEAST_EVERY:
            self._keep(sample)
            self._last = sample

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(10)

    def _run(self) -> None:
        while not self._stopping.wait(EVERY):
            self.look()
