"""Services that run on the leader alone: started after the deferral, stopped on demotion."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Protocol

from argus_sched.clock import Clock
from argus_sched.scheduling.events import Events

_log = logging.getLogger(__name__)


class LeaderService(Protocol):
    """Anything that can be started and stopped; both are called from one thread of the scheduler."""

    def start(self) -> object: ...

    def stop(self) -> object: ...


class LeaderServices:
    """Starts and stops the services of this worker, in a thread of their own, since either may take time.

    No claim protects what a service does, so a new leader waits one deferral for the old one to have noticed.
    """

    def __init__(self, clock: Clock, events: Events) -> None:
        self._clock = clock
        self._events = events
        self._services: list[tuple[str, LeaderService]] = []
        self._running: list[tuple[str, LeaderService]] = []
        self._start_at: float | None = None
        self._still_leads: Callable[[], bool] = lambda: False
        self._lock = threading.Lock()
        self.wake = threading.Event()

    def add(self, name: str, service: LeaderService) -> None:
        """Take a service in; it starts with the next term, or soon if one is under way."""
        with self._lock:
            self._services.append((name, service))
        self.wake.set()

    def __len__(self) -> int:
        return len(self._services)

    def begin(self, deferral: float, still_leads: Callable[[], bool]) -> None:
        """A term began: start everything after `deferral` seconds, if it still lasts."""
        self._still_leads = still_leads
        self._start_at = self._clock.elapsed() + deferral
        self.wake.set()

    def end(self) -> None:
        """The term is over: stop everything, as soon as the thread gets to it."""
        self._start_at = None
        self.wake.set()

    @property
    def running(self) -> tuple[str, ...]:
        """Names of the services that run."""
        return tuple(name for name, _ in self._running)

    def run_once(self) -> float:
        """Start or stop what should be; returns the seconds until the next look is due."""
        start_at = self._start_at
        if start_at is None:
            self._stop_all()
            return 60.0
        ahead = start_at - self._clock.elapsed()
        if ahead > 0:
            return ahead
        if self._still_leads():
            self._start_missing()
            return 60.0
        return 0.1

    def _start_missing(self) -> None:
        with self._lock:
            missing = [entry for entry in self._services if entry not in self._running]
        for name, service in missing:
            # One that is slow to start must not keep the others from being stopped in time.
            if self._start_at is None:
                return
            if self._call(name, "start", service.start):
                self._running.append((name, service))

    def _stop_all(self) -> None:
        while self._running:
            name, service = self._running.pop()
            self._call(name, "stop", service.stop)

    def _call(self, name: str, what: str, call: Callable[[], object]) -> bool:
        try:
            call()
        except Exception:
            _log.exception("leader service %s failed to %s", name, what)
            return False
        self._events(f"service_{what}", {"service": name})
        return True


def run_forever(services: LeaderServices, stop: threading.Event) -> None:
    """The services' thread; stops what runs before it ends."""
    while not stop.is_set():
        services.wake.wait(services.run_once())
        services.wake.clear()
    services.end()
    services.run_once()
