"""The keeper: records how runs ended, shows that this worker lives, and looks after what dead ones left."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from argus_sched.clock import Clock
from argus_sched.errors import ArgusError, ClaimStoreError
from argus_sched.scheduling.auto_disable import AutoDisable
from argus_sched.scheduling.claims import Beat, ClaimStore, Orphan
from argus_sched.scheduling.job import Fire, JobRegistry, OnInterrupted
from argus_sched.scheduling.report import Report
from argus_sched.scheduling.retry import Backoff
from argus_sched.scheduling.runs import Runs

PRUNE_BATCH = 1000

_log = logging.getLogger("argus_sched.scheduling")


@dataclass(frozen=True)
class Pace:
    """How often the keeper does what, in seconds; `dead_after` is two leases.

    An end is recorded at once, since a run whose end is not on record counts as interrupted if its worker
    dies now. Only after more than `crowd` came at a time the keeper lingers, to gather more into one write.
    """

    dead_after: float
    beat: float
    idle_beat: float = 60.0
    prune: float = 60.0
    linger: float = 0.01
    crowd: int = 8

    @classmethod
    def of(cls, horizon: float) -> Pace:
        """The pace for a lease of `horizon` seconds: four beats before a worker may count as dead."""
        return cls(dead_after=2 * horizon, beat=horizon / 2)


@dataclass(frozen=True)
class Sorted:
    """What becomes of open runs that nobody executes."""

    interrupted: tuple[Orphan, ...] = ()
    expired: tuple[Orphan, ...] = ()
    again: tuple[Orphan, ...] = ()


def sort_orphans(orphans: Iterable[Orphan], registry: JobRegistry, now: datetime) -> Sorted:
    """Decide for each: a dead run is recorded or runs again, as its job says; a given-back fire runs while
    its window lasts.

    Runs of jobs that this worker does not declare are left to one that does.
    """
    interrupted, expired, again = [], [], []
    for orphan in orphans:
        job = registry.get(orphan.fire.job_id)
        if job is None:
            continue
        if orphan.dead and job.on_interrupted is OnInterrupted.AT_MOST_ONCE:
            interrupted.append(orphan)
        elif not orphan.dead and orphan.fire.due < now - job.catch_up_window:
            expired.append(orphan)
        else:
            again.append(orphan)
    return Sorted(tuple(interrupted), tuple(expired), tuple(again))


class Keeper:
    """Its thread calls `run_once`, at once when a run ended and otherwise at its pace."""

    def __init__(
        self,
        registry: JobRegistry,
        store: ClaimStore,
        runs: Runs,
        auto_disable: AutoDisable,
        report: Report,
        clock: Clock,
        pace: Pace,
        *,
        max_failures: Callable[[str], int],
        retention: timedelta,
        leads: Callable[[], bool],
        offer: Callable[[list[Orphan]], None],
        in_doubt: Callable[[], list[Fire]] = list,
    ) -> None:
        self._registry = registry
        self.store = store
        self._runs = runs
        self._auto_disable = auto_disable
        self._report = report
        self._clock = clock
        self.pace = pace
        self._max_failures = max_failures
        self._retention = retention
        self._leads = leads
        self._offer = offer
        self._in_doubt = in_doubt
        self._next = {"beat": 0.0, "sweep": 0.0, "audit": 0.0, "prune": clock.elapsed() + pace.prune}
        self._failures = 0
        self._backoff = Backoff(first=0.1, ceiling=2.0)
        self._lock = threading.Lock()
        self.wake = threading.Event()
        self.crowded = False
        self.on_beat: Callable[[Beat], None] = lambda _: None
        runs.on_result = self.wake.set

    def sweep_now(self) -> None:
        """Look for orphans at the next round: a term has just begun."""
        self._next["sweep"] = self._next["beat"] = 0.0
        self.wake.set()

    def run_once(self) -> float:
        """One round; returns the seconds until the next is due. Errors of the store only delay it."""
        try:
            with self._lock:
                self._round()
        except ClaimStoreError as error:
            self._failures += 1
            if self._failures == 1:
                self._report.store_away(error)
            return self._backoff.delay(self._failures, random.random())
        self._failures = 0
        return max(0.0, min(self._next.values()) - self._clock.elapsed())

    def _round(self) -> None:
        self.flush()
        active = self._leads() or self._runs.busy
        leads = self._leads()
        self._chore("beat", self.pace.beat if active else self.pace.idle_beat, lambda: self._beat(active))
        self._chore("sweep", self.pace.beat, self._sweep, wanted=leads)
        self._chore("audit", self.pace.dead_after, self._audit, wanted=active)
        self._chore("prune", self.pace.prune, self._prune, wanted=leads)

    def _chore(self, name: str, every: float, do: Callable[[], None], *, wanted: bool = True) -> None:
        """Do what is due; it stays due when it fails, so that a store that is away is one long failure."""
        now = self._clock.elapsed()
        if now < self._next[name]:
            return
        if wanted:
            do()
        self._next[name] = now + every

    def _beat(self, active: bool) -> None:
        self.on_beat(self.store.beat(active))

    def flush(self) -> None:
        """Record ends and give refused fires back; what fails, whatever the reason, waits for the next round.

        A run whose end was forgotten would look like one that never started, and run again.
        """
        refused = self._runs.take_refused()
        if refused:
            try:
                self.store.give_back(refused)
            except Exception:
                self._runs.keep_refused(refused)
                raise
        results = self._runs.take_results()
        if results:
            limits = {result.fire.job_id: self._max_failures(result.fire.job_id) for result in results}
            try:
                disabled = self.store.finish(results, limits)
            except Exception:
                self._runs.keep_results(results)
                raise
            self._auto_disable.tell(disabled)
        self.crowded = len(results) > self.pace.crowd

    def _sweep(self) -> None:
        dead_after = timedelta(seconds=self.pace.dead_after)
        found = sort_orphans(self.store.orphans(dead_after), self._registry, self._clock.now())
        if found.interrupted:
            for orphan in self.store.interrupt(found.interrupted):
                self._report.interrupted(orphan)
        if found.expired:
            self.store.expire(found.expired)
            for orphan in found.expired:
                self._report.expired(orphan)
        self._offer(list(found.again))

    def _audit(self) -> None:
        """Give back claims on record as ours whose answer never arrived: their bodies never started."""
        # Doubts before runs: a claim that is answered in between moves from the one to the other.
        known = self._in_doubt() + self._runs.known()
        forgotten = self.store.forgotten(known, timedelta(seconds=self.pace.dead_after))
        if forgotten:
            self._runs.refuse(*forgotten)

    def _prune(self) -> None:
        longest = max((job.catch_up_window for job in self._registry), default=timedelta(0))
        while self.store.prune(max(self._retention, 2 * longest), PRUNE_BATCH) == PRUNE_BATCH:
            self.flush()


def run_forever(keeper: Keeper, stop: threading.Event) -> None:
    """The keeper's thread: rounds until `stop`, gathering ends that come within a moment into one write."""
    told = ""
    while not stop.is_set():
        try:
            pause = keeper.run_once()
            told = ""
        except ArgusError as error:
            if str(error) != told:
                told = str(error)
                _log.error("the keeper cannot do its work: %s", error)
            pause = 5.0
        except Exception as error:
            if repr(error) != told:
                told = repr(error)
                _log.exception("a round of the keeper failed")
            pause = 1.0
        keeper.wake.wait(pause)
        keeper.wake.clear()
        if keeper.crowded:
            stop.wait(keeper.pace.linger)
