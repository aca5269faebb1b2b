"""Running without a store, where that is allowed: outside production, with one warning a minute."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from argus_sched.clock import Clock
from argus_sched.scheduling.claims import ClaimStore
from argus_sched.scheduling.events import Events
from argus_sched.scheduling.fires import Fires
from argus_sched.scheduling.settings import Settings
from argus_sched.scheduling.unclaimed import Unclaimed

# A restart of the store is no reason to run unguarded.
PATIENCE = 5.0
BETWEEN_WARNINGS = 60.0

_log = logging.getLogger("argus_sched.scheduling")


class Fallback:
    """Lets jobs run unguarded and unclaimed while the store is away; in production it never does."""

    def __init__(
        self, settings: Settings, fires: Fires, store: ClaimStore, clock: Clock, events: Events
    ) -> None:
        self.active = False
        self._settings = settings
        self._fires = fires
        self._store = store
        self._clock = clock
        self._events = events
        # The supervisor and the elector both say that the store is back; a gate which the latter has opened
        # since must stay open.
        self._turn = threading.Lock()
        self._away_since: float | None = None
        self._warned_at = float("-inf")

    def away(self, serve: Callable[[], None]) -> None:
        """The store could not be reached; `serve` starts the threads that fire, if they do not run yet."""
        if self._settings.production:
            return
        now = self._clock.elapsed()
        if self._away_since is None:
            self._away_since = now
        if not self.active and now - self._away_since >= PATIENCE:
            with self._turn:
                self.active = True
                self._fires.store = Unclaimed()
                serve()
                self._fires.begin(0)
        if self.active and now - self._warned_at >= BETWEEN_WARNINGS:
            self._warned_at = now
            self._warn()

    def back(self) -> None:
        """The store answers: from here on fires are guarded again."""
        self._away_since = None
        with self._turn:
            if not self.active:
                return
            self._fires.end()
            self._fires.store = self._store
            self.active = False
            _log.warning("the store is reachable again: jobs run guarded")

    def _warn(self) -> None:
        environment = self._settings.environment
        _log.warning(
            "the store is unreachable and the environment is %r: jobs run unguarded and unclaimed here",
            environment,
        )
        self._events("unguarded", {"environment": environment})
