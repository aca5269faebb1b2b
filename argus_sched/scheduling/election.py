"""One worker's part in the election, a step at a time.

    connect ──► try the lock ──won──► leader ──tick, tick, …──► demoted ──► connect
                    │ taken             ▲
                    ▼                   │ granted
                 standby ──heir's key──► heir, who queues for the lock, 0.9 s at a time

Each round looks at the situation, lets `leadership.next_step` decide, and acts. Two workers may believe in
themselves for the moment between the end of a session and the look that notices it; the claims make that
harmless.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from typing import ClassVar

from argus_sched.clock import Clock
from argus_sched.errors import ArgusError, LeadershipRefused
from argus_sched.scheduling.announcer import Announcer
from argus_sched.scheduling.leadership import (
    HEIR_POLL,
    Cause,
    Role,
    Server,
    Situation,
    Step,
    Term,
    Timing,
    next_step,
    refusal_pause,
    retreat,
    retry_pause,
)
from argus_sched.scheduling.ports import LeaderLock, SessionLostError, WaitUnsupportedError
from argus_sched.scheduling.wakeup import WakeUp

logger = logging.getLogger("argus_sched.scheduling")

# A worker that won but could not start leaves the lock to the others for this long.
FAILED_START_COOLDOWN = 10.0


class Election:
    """The state of one worker's part; `run_once` is called by one thread, the attributes are read by any."""

    def __init__(
        self,
        lock_factory: Callable[[], LeaderLock],
        timing: Timing,
        *,
        announcer: Announcer,
        on_promote: Callable[[Term], None],
        on_demote: Callable[[Term, Cause], None],
        clock: Clock,
        jitter: Callable[[], float],
        eligible_from: float,
        watch: bool,
        tick: bool,
    ) -> None:
        self.role = Role.STANDBY
        self.term: Term | None = None
        self.trusted_until = 0.0
        self.timing = timing
        self.problem: str | None = None
        self.tick_seconds = 0.0
        self.last_turn = clock.elapsed()
        self.lock: LeaderLock | None = None
        self.wake = WakeUp()
        self.eligible_from = eligible_from
        self.stopping = False
        self._wanted_timing = timing
        self._lock_factory = lock_factory
        self._news = announcer
        self._on_promote = on_promote
        self._on_demote = on_demote
        self._clock = clock
        self._jitter = jitter
        self._watches = watch
        self._ticks = tick
        self._can_wait = True
        self._good_at = 0.0
        self._due_at = 0.0
        self._seen: Server | None = None
        self._troubled_since: float | None = None
        self._stood_by = False

    def run_once(self) -> Step:
        """Look, decide, act: one step, which may wait for as long as that step waits.

        Never raises; whatever goes wrong ends the session, and with it the term.
        """
        self.wake.clear()
        step = next_step(self._situation(), self._clock.elapsed())
        try:
            self._actions[step](self)
        except SessionLostError as lost:
            self._back_off(retry_pause, "reconnecting", lost.cause, lost.detail)
        except ArgusError as refusal:
            self._back_off(refusal_pause, "refused", Cause.REFUSED, str(refusal))
        except Exception as error:
            logger.exception("the elector stumbled")
            self._back_off(retry_pause, "reconnecting", Cause.ERROR, f"{type(error).__name__}: {error}")
        self.last_turn = self._clock.elapsed()
        return step

    def _situation(self) -> Situation:
        return Situation(self.role, self.lock is not None, self._due_at, self.eligible_from, self.stopping)

    # Without a session.

    def _rest(self) -> None:
        self._clock.wait(self.wake, self._due_at - self._clock.elapsed())

    def _connect(self) -> None:
        self.lock = lock = self._lock_factory()
        if reason := retreat(self._seen, lock.server):
            raise LeadershipRefused(reason)
        self._seen = lock.server or self._seen
        self._settle_timing(lock.supports_lease)
        if self._may_lead() and lock.try_lead():
            self._promote(lock)
        else:
            self._stand_by()

    def _settle_timing(self, supports_lease: bool) -> None:
        timing = self._wanted_timing.on_server(supports_lease)
        if timing not in (self.timing, self._wanted_timing):
            self._news.no_lease(timing)
        self.timing = timing

    # As a standby or the heir.

    def _stand_by(self) -> None:
        self.role = Role.STANDBY
        # Due at once, then every `probe` from a moment drawn by chance: an even rate, and no crowd.
        self._due_at = self._clock.elapsed() - self._jitter() * self.timing.probe
        if not self._stood_by:
            self._stood_by = True
            self._news.standby(self.timing.probe)

    def _probe(self) -> None:
        lock = self._session
        self._schedule_probe()
        if self.timing.heir_wait is None:
            won = lock.try_lead()
        else:
            won = False
            self._inherit(lock)
        self._settled()
        if won:
            self._promote(lock)

    def _inherit(self, lock: LeaderLock) -> None:
        if lock.try_heir():
            self.role = Role.HEIR
            self._due_at = self._clock.elapsed()
            self._news.event("heir", backend_pid=lock.backend_pid)

    def _keep(self) -> None:
        self._schedule_probe()
        self._session.keep()

    def _schedule_probe(self) -> None:
        probe = self.timing.probe
        self._due_at = max(self._due_at, self._clock.elapsed() - probe) + probe

    def _wait(self) -> None:
        lock = self._session
        won = self._queue(lock) if self._can_wait else self._poll(lock)
        self._settled()
        # A wait that was ended by `stop` or `resign` may have been granted all the same; their step lets go.
        if won and self._may_lead():
            self._promote(lock)

    def _queue(self, lock: LeaderLock) -> bool:
        try:
            return lock.wait_to_lead(self.timing.heir_wait or HEIR_POLL, self.wake)
        except WaitUnsupportedError as error:
            self._can_wait = False
            self._news.event("polling", every=HEIR_POLL, reason=str(error))
            return False

    def _poll(self, lock: LeaderLock) -> bool:
        self._due_at = self._clock.elapsed() + HEIR_POLL
        return lock.try_lead()

    def _watch(self) -> None:
        seconds = self._due_at - self._clock.elapsed()
        if not self._watches:
            self._clock.wait(self.wake, min(seconds, self.timing.horizon))
        elif self._session.watch(seconds, self.wake) and self.role is Role.STANDBY:
            self._due_at = self._clock.elapsed()

    # As the leader.

    def _promote(self, lock: LeaderLock) -> None:
        """From a granted lock to an open gate: verify, record, believe, tell."""
        sent = self._clock.elapsed()
        lock.tick()
        term = Term(lock.promote(), sent, lock.backend_pid)
        self._believe(sent)
        self.term, self.role = term, Role.LEADER
        self._settled()
        try:
            self._on_promote(term)
        except Exception as error:
            logger.exception("Scheduler promotion failed, so the lock goes to another worker")
            self._give_up(lock, f"starting failed with {type(error).__name__}: {error}")
        else:
            self._news.elected(term, self._clock.elapsed() - sent, failover=self._stood_by)
            self._stood_by = False

    def _give_up(self, lock: LeaderLock, problem: str) -> None:
        self._demote(Cause.PROMOTION_FAILED, problem)
        self.problem = problem
        self.eligible_from = max(self.eligible_from, self._clock.elapsed() + FAILED_START_COOLDOWN)
        lock.release()
        self._stand_by()

    def _tick(self) -> None:
        sent = self._clock.elapsed()
        if sent - self._due_at > self.timing.horizon / 2:
            self._news.event("gap", seconds=sent - self._due_at)
        self._session.tick()
        self.tick_seconds = self._clock.elapsed() - sent
        self._believe(sent)
        self._settled()

    def _believe(self, sent: float) -> None:
        # From when the question was sent: the server counts the silence from later than that.
        self._good_at = sent
        self.trusted_until = sent + self.timing.trust if self._ticks else math.inf
        self._due_at = sent + self.timing.tick if self._ticks else math.inf

    def _demote(self, cause: Cause, detail: str) -> None:
        """End the term: no more trust first, then whatever trusted, then the words about it."""
        self.trusted_until = 0.0
        self.role = Role.STANDBY
        term, self.term = self.term, None
        if term is None:
            return
        noticed = self._clock.elapsed()
        try:
            self._on_demote(term, cause)
        except Exception:
            logger.exception("Scheduler demotion: what led here did not stop cleanly")
        seconds = self._clock.elapsed() - noticed
        self._news.demoted(term, cause, detail, silence=noticed - self._good_at, seconds=seconds)

    def _step_down(self) -> None:
        self._demote(Cause.RESIGNED, "asked to resign")
        self._session.release()
        self._stand_by()

    # The end of a session, and of it all.

    def _back_off(
        self, pause: Callable[[float, float], float], event: str, cause: Cause, detail: str
    ) -> None:
        led = self.role is Role.LEADER
        self._demote(cause, detail)
        self._close()
        now = self._clock.elapsed()
        if self._troubled_since is None:
            self._troubled_since = now
        self._due_at = now + pause(now - self._troubled_since, self._jitter())
        if detail != self.problem:
            self.problem = detail
            self._news.trouble(event, cause, detail, told=led)

    def _settled(self) -> None:
        if self._troubled_since is not None:
            self._news.event("recovered", seconds=self._clock.elapsed() - self._troubled_since)
        self._troubled_since = self.problem = None

    def _stop(self) -> None:
        self._demote(Cause.STOPPED, "asked to stop")
        try:
            if self.lock:
                self.lock.release()
        except ArgusError as error:
            logger.info("Scheduler stopped without a hand-over: %s", error)
        self._close()
        self.role = Role.STOPPED
        self._news.event("stopped")

    def _close(self) -> None:
        lock, self.lock = self.lock, None
        if lock:
            lock.close()

    # Small things.

    @property
    def _session(self) -> LeaderLock:
        if self.lock is None:
            raise SessionLostError(Cause.CONNECTION_LOST, "there is no session")
        return self.lock

    def _may_lead(self) -> bool:
        return not self.stopping and self._clock.elapsed() >= self.eligible_from

    _actions: ClassVar[Mapping[Step, Callable[[Election], None]]] = {
        Step.STOP: _stop,
        Step.CONNECT: _connect,
        Step.REST: _rest,
        Step.WATCH: _watch,
        Step.STEP_DOWN: _step_down,
        Step.TICK: _tick,
        Step.PROBE: _probe,
        Step.WAIT: _wait,
        Step.KEEP: _keep,
    }
