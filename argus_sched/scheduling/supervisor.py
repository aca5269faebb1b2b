"""The supervisor: boots the parts without holding anyone up, then looks after them."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable

from argus_sched.clock import Clock
from argus_sched.errors import ArgusError, ClaimStoreError
from argus_sched.scheduling import log_lines
from argus_sched.scheduling.apscheduler_engine import Engine
from argus_sched.scheduling.claims import ClaimStore
from argus_sched.scheduling.events import Events
from argus_sched.scheduling.fallback import Fallback
from argus_sched.scheduling.job import JobRegistry
from argus_sched.scheduling.metrics import Metrics
from argus_sched.scheduling.retry import Backoff
from argus_sched.scheduling.settings import Settings

ROUND = 1.0
BETWEEN_CENSUSES = 60.0
# A firing thread that made no round for so long is stuck, and another worker should lead.
STALL = 15.0
_BOOT_RETRY = Backoff(first=0.2, ceiling=30.0)

_log = logging.getLogger("argus_sched.scheduling")


class Supervisor:
    """Its thread calls `boot` until that succeeds, then `run_once` every second.

    `join` makes this worker take part, `serve` starts the threads that fire, `resign` lets another lead.
    """

    def __init__(
        self,
        settings: Settings,
        registry: JobRegistry,
        store: ClaimStore,
        engine: Engine,
        fallback: Fallback,
        events: Events,
        metrics: Metrics,
        clock: Clock,
        *,
        serve: Callable[[], None],
        join: Callable[[], None],
        resign: Callable[[], None],
        leads: Callable[[], bool],
        idle: Callable[[], bool],
        last_round: Callable[[], float],
    ) -> None:
        self.problem = ""
        self.booted = False
        self._settings = settings
        self._registry = registry
        self._store = store
        self._engine = engine
        self._fallback = fallback
        self._events = events
        self._metrics = metrics
        self._clock = clock
        self._serve = serve
        self._join = join
        self._resign = resign
        self._leads = leads
        self._idle = idle
        self._last_round = last_round
        self._broken: list[tuple[str, str]] = []
        self._other_sets: set[str] = set()
        self._next_census = 0.0

    def run_forever(self, stop: threading.Event) -> None:
        """The thread: boot, however often that takes, then one round a second."""
        failures = 0
        while not stop.is_set() and not self.boot():
            failures += 1
            stop.wait(_BOOT_RETRY.delay(failures, random.random()))
        told = ""
        while not stop.wait(ROUND):
            try:
                self.run_once()
                told = ""
            except ArgusError as error:
                if str(error) != told:
                    told = str(error)
                    _log.warning("the scheduler's supervisor goes on without: %s", error)
            except Exception as error:
                if repr(error) != told:
                    told = repr(error)
                    _log.exception("the scheduler's supervisor stumbled")

    def boot(self) -> bool:
        """One attempt to get everything going; what is in the way is said once, and stands in `problem`."""
        if self._idle():
            self._say("this worker declares neither a job nor a leader service, so it must not lead")
            return False
        try:
            if self._engine.problem():
                self._engine.start(self._registry)
            self._store.open(self._registry, self._registry.schedule_hash())
        except ArgusError as error:
            self._say(str(error))
            if isinstance(error, ClaimStoreError):
                self._fallback.away(self._serve)
            return False
        except Exception as error:
            self._say(f"{type(error).__name__}: {error}")
            return False
        self._fallback.back()
        self.booted, self.problem = True, ""
        self._serve()
        self._join()
        return True

    def _say(self, problem: str) -> None:
        if problem != self.problem:
            self.problem = problem
            _log.error("the scheduler is not running: %s", problem)

    def run_once(self) -> None:
        """One look after everything."""
        self._engine.nudge()
        self._mend_engine()
        self._notice_stall()
        self._switch_off_broken()
        if not self._settings.production and (self._fallback.active or not self._leads()):
            self._try_the_store()
        # The first census is everyone's; later ones are the leader's: an idle worker should cost nothing.
        due = self._clock.elapsed() >= self._next_census and not self._fallback.active
        if due and (self._leads() or not self._next_census):
            self._next_census = self._clock.elapsed() + BETWEEN_CENSUSES
            self._take_census()

    def mark_broken(self, job_id: str, reason: str) -> None:
        """A job cannot be scheduled any more; it is switched off at the next round.

        Called while APScheduler holds its lock, so the store has to wait.
        """
        self._broken.append((job_id, reason))

    def _mend_engine(self) -> None:
        problem = self._engine.problem()
        if not problem:
            return
        _log.error("%s: building a fresh one", problem)
        self._events("engine_failed", {"problem": problem})
        try:
            self._engine.rebuild(self._registry)
        except Exception:
            _log.exception("the engine cannot be rebuilt, so another worker should lead")
            self._resign()

    def _notice_stall(self) -> None:
        silent = self._clock.elapsed() - self._last_round()
        if silent > STALL and self._leads():
            problem = f"nothing was fired for {silent:.0f} s: the firing thread is stuck"
            _log.error("%s, so another worker should lead", problem)
            self._events("engine_failed", {"problem": problem})
            self._resign()

    def _switch_off_broken(self) -> None:
        while self._broken:
            job_id, reason = self._broken[0]
            job = self._registry[job_id]
            if self._store.switch(job_id, False, "scheduler", reason, self._clock.now()):
                log_lines.disabled(job.id, job.name, "scheduler", reason)
            del self._broken[0]

    def _try_the_store(self) -> None:
        try:
            self._store.beat(False)
        except ClaimStoreError:
            self._fallback.away(self._serve)
            return
        if self._fallback.active:
            self._fallback.back()
            if self._settings.coordination != "leader":
                self._join()

    def _take_census(self) -> None:
        self._metrics.disabled_jobs = len(self._store.disabled())
        for found, host, pid in self._store.other_sets():
            if found not in self._other_sets:
                self._other_sets.add(found)
                self._tell_other_set(found, host, pid)

    def _tell_other_set(self, found: str, host: str, pid: int) -> None:
        ours = self._registry.schedule_hash()
        _log.warning(
            "worker %s:%s declares another set of jobs (%s) than this one (%s): workers of namespace %r "
            "must run the same code, so finish the deployment",
            host,
            pid,
            found,
            ours,
            self._settings.namespace,
        )
        fields = {"other": found, "ours": ours, "host": host, "pid": pid}
        self._events("schedule_set_differs", fields)
