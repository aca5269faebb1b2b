"""The running parts of one scheduler in one process: wired at the start, thrown away at the stop.

elector ── on_promote, on_demote ──► the fires' gate, the leader's services
APScheduler ── "job X is due" ──► fires ── claims ──► job threads ── ends ──► keeper
supervisor: boots, then looks after the others
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable

from argus_sched.clock import Clock
from argus_sched.errors import ArgusError
from argus_sched.scheduling import fires as fires_service
from argus_sched.scheduling import keeper as keeper_service
from argus_sched.scheduling import leader_services as services_service
from argus_sched.scheduling.apscheduler_engine import Engine
from argus_sched.scheduling.auto_disable import AutoDisable
from argus_sched.scheduling.claims import Beat, ClaimStore
from argus_sched.scheduling.elector import Elector
from argus_sched.scheduling.events import Events
from argus_sched.scheduling.fallback import Fallback
from argus_sched.scheduling.fires import Fires
from argus_sched.scheduling.job import Fire, Job, JobRegistry
from argus_sched.scheduling.keeper import Keeper, Pace
from argus_sched.scheduling.leader_services import LeaderServices
from argus_sched.scheduling.leadership import Cause, Role, Term
from argus_sched.scheduling.metrics import Metrics
from argus_sched.scheduling.pool import Pool
from argus_sched.scheduling.report import Report
from argus_sched.scheduling.run_now import RunNowService
from argus_sched.scheduling.runs import Runs
from argus_sched.scheduling.settings import Settings
from argus_sched.scheduling.supervisor import Supervisor

# After a failure that another worker may not have, it gets this long to lead.
COOLDOWN = 10.0

NewElector = Callable[[Callable[[Term], None], Callable[[Term, Cause], None]], Elector]

_log = logging.getLogger("argus_sched.scheduling")


class Machine:
    """One life of a scheduler in this process: `start` and `stop` once, the rest is for the facade."""

    def __init__(
        self,
        settings: Settings,
        registry: JobRegistry,
        services: LeaderServices,
        events: Events,
        metrics: Metrics,
        clock: Clock,
        *,
        instance: str,
        store: ClaimStore,
        auto_disable: AutoDisable,
        new_elector: NewElector | None,
    ) -> None:
        self.pid = os.getpid()
        self.instance = instance
        self.store = store
        self.services = services
        self._settings = settings
        self._registry = registry
        self._metrics = metrics
        self._clock = clock
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._serving = False
        self._won_at: float | None = None
        self._events = events
        self._report = Report(events, metrics)
        self._pace = Pace.of(settings.effective_timing.horizon)
        self.engine = Engine(self._signal, self._mark_broken, clock)
        self.runs = Runs(Pool(settings.threads), self.engine.execute, self._may_start, self._report, clock)
        self.fires = self._new_fires()
        self.keeper = self._new_keeper(auto_disable)
        dead_after = self._pace.dead_after
        self.run_now = RunNowService(store, self.runs, self._report, clock, dead_after=dead_after)
        self.fallback = Fallback(settings, self.fires, store, clock, events)
        self.elector = new_elector(self._on_promote, self._on_demote) if new_elector else None
        self.supervisor = self._new_supervisor()

    def _new_fires(self) -> Fires:
        return Fires(
            self._registry,
            self.store,
            self.runs,
            self._report,
            self._clock,
            trusted=self.trusted,
            say_skipped=lambda job_id: self.engine.say_skipped(self._registry[job_id]),
            on_fenced=self._on_fenced,
            on_opened=self._on_opened,
            instance=self.instance,
            born=self._clock.now(),
            catch_up="catch-up" not in self._settings.without,
            hashed_jitter="jitter-hash" not in self._settings.without,
        )

    def _new_keeper(self, auto_disable: AutoDisable) -> Keeper:
        keeper = Keeper(
            self._registry,
            self.store,
            self.runs,
            auto_disable,
            self._report,
            self._clock,
            self._pace,
            max_failures=lambda _: self._settings.max_failures,
            retention=self._settings.retention,
            leads=self.trusted,
            offer=self.fires.offer,
            in_doubt=self.fires.in_doubt,
        )
        keeper.on_beat = self._on_beat
        return keeper

    def _new_supervisor(self) -> Supervisor:
        return Supervisor(
            self._settings,
            self._registry,
            self.store,
            self.engine,
            self.fallback,
            self._events,
            self._metrics,
            self._clock,
            serve=self._serve,
            join=self._join_in,
            resign=self._resign,
            leads=self.trusted,
            idle=lambda: not len(self._registry) and not len(self.services),
            last_round=lambda: self.fires.last_turn,
        )

    # What the others ask.

    def trusted(self) -> bool:
        """True while this worker may claim and start fires of the schedule."""
        if self.fallback.active:
            return True
        return self.elector.is_trusted() if self.elector else self.supervisor.booted

    def _may_start(self, fire: Fire) -> bool:
        return fire.origin.startswith("manual:") or self.trusted()

    @property
    def role(self) -> Role:
        """What this worker is; where nobody is elected, each leads itself."""
        if self.elector is not None and not self.fallback.active:
            return self.elector.role
        return Role.LEADER if self.fires.firing else Role.STANDBY

    @property
    def problem(self) -> str:
        """What keeps this worker from its part, as one sentence; empty when nothing does."""
        elector = self.elector.problem if self.elector else None
        return self.supervisor.problem or elector or self.fires.problem

    # The life.

    def start(self) -> None:
        """Start the supervisor, which does the rest without holding up the caller."""
        self._spawn("argus-supervisor", lambda: self.supervisor.run_forever(self._stop))

    def stop(self, timeout: float) -> bool:
        """Give leadership up, let runs end, record them, leave; True when the runs ended within `timeout`."""
        deadline = self._clock.elapsed() + timeout
        self.fires.end()
        if self.elector is not None:
            self.elector.stop(timeout)
        self._stop.set()
        for wake in (self.fires.wake, self.services.wake, self.keeper.wake):
            wake.set()
        # The threads first: a claim that is under way may still start runs.
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(max(0.5, deadline - self._clock.elapsed()))
        finished = self.runs.wait(max(0.0, deadline - self._clock.elapsed()))
        self._say_goodbye()
        return finished

    def add(self, job: Job) -> None:
        """A job was declared after the start."""
        self.engine.add(job)
        self.fires.wake.set()

    def _say_goodbye(self) -> None:
        self.engine.stop()
        try:
            self.keeper.flush()
            self.store.close()
        except ArgusError as error:
            _log.warning("the scheduler stopped, but could not tell its store: %s", error)

    def _spawn(self, name: str, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _serve(self) -> None:
        if self._serving:
            return
        self._serving = True
        self._spawn("argus-fires", lambda: fires_service.run_forever(self.fires, self._stop))
        self._spawn("argus-keeper", lambda: keeper_service.run_forever(self.keeper, self._stop))
        self._spawn("argus-services", lambda: services_service.run_forever(self.services, self._stop))

    def _join_in(self) -> None:
        if self.elector is not None:
            self.elector.start()
            return
        self.fires.begin(0)
        self.keeper.sweep_now()

    def _resign(self) -> None:
        if self.elector is not None:
            self.elector.resign(COOLDOWN)

    # Called by the parts, in their threads.

    def _signal(self, job_id: str) -> None:
        self.fires.due(job_id)

    def _mark_broken(self, job_id: str, reason: str) -> None:
        self.supervisor.mark_broken(job_id, reason)

    def _on_promote(self, term: Term) -> None:
        self._won_at = term.won_at
        self.fallback.back()
        waits = "deferral" not in self._settings.without
        deferral = self.elector.timing.deferral if self.elector and waits else 0.0
        # Claims keep two leaders apart; without them, the old one gets a tick's time to notice.
        self.fires.begin(term.epoch, 0.0 if self._settings.guarded_by_claims else deferral)
        self.keeper.sweep_now()
        self.services.begin(deferral, self.trusted)

    def _on_demote(self, _: Term, cause: Cause) -> None:
        self.fires.end()
        self.services.end()
        self._metrics.changed(str(cause))

    def _on_opened(self, changed_from: str | None) -> None:
        if changed_from is not None:
            _log.warning(
                "the set of jobs of namespace %r changed from %s to %s: if no deployment is under way, "
                "a worker runs other code than the rest",
                self._settings.namespace,
                changed_from,
                self._registry.schedule_hash(),
            )
        if self._won_at is not None:
            self._metrics.promotion_seconds.observe(self._clock.elapsed() - self._won_at)
            self._won_at = None

    def _on_fenced(self) -> None:
        _log.warning("a newer leader exists, so this worker claims nothing more")
        if self.elector is not None:
            # Long enough to let go; any longer, and the newer leader might die without an heir.
            self.elector.resign(self.elector.timing.probe)

    def _on_beat(self, beat: Beat) -> None:
        self._report.clock(beat.offset)
        if self.elector is not None and self.elector.is_trusted():
            self._metrics.tick_seconds.observe(self.elector.tick_seconds)
        if beat.resign_for is not None and self.elector is not None:
            self.elector.resign(beat.resign_for)
