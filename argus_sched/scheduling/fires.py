"""Fires: what is due is looked at, decided and settled, one round after the other.

The engine only says "job X is due"; which due times that means follows from the last one answered for, so
that a late round, a hand-over and a restart are all the same case. Each due time gets exactly one answer on
record: it runs, or the reason why not.
"""

from __future__ import annotations

import logging
import random
import threading
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from argus_sched import due_times
from argus_sched.clock import Clock
from argus_sched.errors import ArgusError, ClaimStoreError
from argus_sched.scheduling.claims import (
    Batch,
    ClaimStore,
    Orphan,
    Outcome,
    OutcomeUnknownError,
    TermView,
    Verdict,
    Want,
)
from argus_sched.scheduling.congestion import Congestion
from argus_sched.scheduling.decisions import MOST_WANTS, Decision, Look, Seen, decide
from argus_sched.scheduling.job import Fire, Job, JobRegistry
from argus_sched.scheduling.reign import Reign
from argus_sched.scheduling.report import Report
from argus_sched.scheduling.retry import Backoff
from argus_sched.scheduling.runs import Runs

_log = logging.getLogger("argus_sched.scheduling")

IDLE = 1.0  # seconds between rounds when nothing signals
WAITING = 0.2  # the same while something due waits for room
JUST_BEFORE = timedelta(microseconds=1)


class Fires:
    """The firing service: its thread calls `run_once`; the engine and the elector only signal."""

    def __init__(
        self,
        registry: JobRegistry,
        store: ClaimStore,
        runs: Runs,
        report: Report,
        clock: Clock,
        *,
        trusted: Callable[[], bool],
        say_skipped: Callable[[str], None],
        on_fenced: Callable[[], None],
        on_opened: Callable[[str | None], None] = lambda _: None,
        instance: str,
        born: datetime,
        catch_up: bool = True,
        hashed_jitter: bool = True,
    ) -> None:
        self._registry = registry
        self.store = store
        self._runs = runs
        self._report = report
        self._clock = clock
        self._trusted = trusted
        self._say_skipped = say_skipped
        self._on_fenced = on_fenced
        self._on_opened = on_opened
        self._origin = f"start:{instance}"
        self._born = born
        self._catch_up = catch_up
        self._hashed_jitter = hashed_jitter
        self._reign: Reign | None = None
        # What the store is being asked for, or did not answer; a claim in here may stand without a run.
        self._doubt: Batch | None = None
        self._taking: tuple[Orphan, ...] = ()
        self._backoff = Backoff(first=0.02, ceiling=0.5)
        self._failures = 0
        self._congestion = Congestion()
        self.last_turn = clock.elapsed()
        self.problem = ""  # why nothing can be claimed, as one sentence
        self.wake = threading.Event()
        runs.on_free = self._on_free

    def begin(self, epoch: int, deferral: float = 0.0) -> None:
        """Open the gate: from now on what is due is queued, and fires once the watermarks are read."""
        # The gate opens before the instant is taken: what is due later than `started` is then signalled.
        reign = Reign(epoch, self._clock.elapsed() + deferral, self._clock.now())
        self._reign = reign
        reign.started = self._clock.now()
        self.wake.set()

    def end(self) -> None:
        """Close the gate at once; what is queued here is the next leader's, from the watermarks."""
        self._reign = None

    @property
    def firing(self) -> bool:
        """True while the gate is open and the watermarks are read."""
        reign = self._reign
        return reign is not None and reign.loaded

    def due(self, job_id: str) -> None:
        """The engine found this job due; dropped while the gate is closed."""
        reign = self._reign
        if reign is not None:
            reign.signals.append(job_id)
            self.wake.set()

    def offer(self, orphans: list[Orphan]) -> None:
        """Open runs for this leader to take over."""
        reign = self._reign
        if reign is not None and orphans:
            for orphan in orphans:
                reign.orphans.setdefault(orphan.fire.key, orphan)
            self.wake.set()

    def in_doubt(self) -> list[Fire]:
        """Fires that may be ours by a claim under way or unanswered; they are not forgotten."""
        doubt, taking = self._doubt, self._taking
        asked = [Fire(want.due, want.job_id, 0, 1, want.origin) for want in doubt.wants] if doubt else []
        for orphan in taking:
            fire = orphan.fire
            asked += [replace(fire, attempt=fire.attempt + step) for step in (0, 1)]
        return asked

    def _on_free(self) -> None:
        reign = self._reign
        if reign is not None and (reign.pending or reign.orphans):
            self.wake.set()

    def run_once(self) -> float:
        """One round; returns the seconds until another is worth it if nothing signals."""
        self.last_turn = self._clock.elapsed()
        reign = self._reign
        try:
            if reign is None:
                self.problem = ""
                self._drop_doubt()
                return IDLE
            ahead = reign.opens_at - self._clock.elapsed()
            if ahead > 0:
                return ahead
            return self._round(reign)
        except ClaimStoreError as error:
            self._failures += 1
            self.problem = str(error)
            if self._failures == 1:
                self._report.store_away(error)
            return self._backoff.delay(self._failures, random.random())

    def _round(self, reign: Reign) -> float:
        if not self._trusted():
            return WAITING
        if not reign.loaded:
            self._load(reign)
        elif reign.jobs != len(self._registry):
            self._declare(reign)
        self._settle_doubt(reign)
        look = self.look(reign)
        decision = decide(look)
        self.settle(reign, decision)
        self._failures = 0
        self._notice_congestion(len(reign.pending))
        if not reign.pending and not reign.orphans:
            return self._until_start(reign, look.now)
        # More may be due of what was just answered; without free slots or room, an end wakes us earlier.
        return 0.0 if (decision.wants or decision.orphans) and self._runs.free > 0 else WAITING

    def _notice_congestion(self, waiting: int) -> None:
        was = self.problem
        self.problem = self._congestion.look(waiting, self._runs.free, self._runs.size, self._clock.elapsed())
        if self.problem and not was:
            _log.warning("%s", self.problem)

    def _load(self, reign: Reign) -> None:
        view = self._declare(reign)
        if self._catch_up:
            for job_id, watermark in view.behind.items():
                if self._registry.get(job_id) is not None:
                    reign.answered[job_id] = watermark
                    reign.pending[job_id] = None
        for job in self._registry:
            if job.first_run_after is not None and self._born + job.first_run_after > reign.started:
                reign.starts[job.id] = self._born + job.first_run_after
        reign.loaded = True
        self._on_opened(view.changed_from)

    def _declare(self, reign: Reign) -> TermView:
        jobs = list(self._registry)
        now = self._clock.now() if reign.loaded else reign.started
        view = self.store.begin_term(reign.epoch, jobs, self._registry.schedule_hash(), now)
        reign.jobs = len(jobs)
        return view

    def look(self, reign: Reign) -> Look:
        """What is due, what waits, and how much may be started."""
        while reign.signals:
            reign.pending[reign.signals.popleft()] = None
        now = self._clock.now()
        free = self._runs.free
        return Look(
            now=now,
            term_start=reign.started,
            free=free,
            jobs=tuple(self._pending(reign, now, free)),
            starts=tuple(self._starting(reign, now)),
            orphans=tuple((orphan, self._room(orphan.fire.job_id)) for orphan in reign.orphans.values()),
            start_origin=self._origin,
        )

    def _pending(self, reign: Reign, now: datetime, free: int) -> list[Seen]:
        """The waiting jobs a round can answer: as many as there are slots, besides those without room."""
        seen: list[Seen] = []
        for job_id in reign.pending:
            if free <= 0 or len(seen) >= MOST_WANTS:
                break
            job, running = self._registry[job_id], self._runs.running(job_id)
            after = reign.answered.get(job_id, reign.started)
            seen.append(Seen(job, after, self._ripe(job, after, now), running))
            free -= running < job.max_instances
        return seen

    def _ripe(self, job: Job, after: datetime, now: datetime) -> datetime:
        """Until when due times may run: the last one is held back while its jitter lasts."""
        if not job.jitter:
            return now
        last = due_times.latest_between(job.trigger, after, now)
        if last is None or last + self._delay(job, last) <= now:
            return now
        return last - JUST_BEFORE

    def _delay(self, job: Job, due: datetime) -> timedelta:
        return job.delay(due) if self._hashed_jitter else job.jitter * random.random()

    def _starting(self, reign: Reign, now: datetime) -> list[tuple[Job, datetime, int]]:
        return [
            (self._registry[job_id], at, self._runs.running(job_id))
            for job_id, at in reign.starts.items()
            if at <= now
        ]

    def _until_start(self, reign: Reign, now: datetime) -> float:
        ahead = min(((at - now).total_seconds() for at in reign.starts.values()), default=IDLE)
        return max(0.0, min(ahead, IDLE))

    def _room(self, job_id: str) -> int:
        job = self._registry.get(job_id)
        return 0 if job is None else job.max_instances - self._runs.running(job_id)

    def _settle_doubt(self, reign: Reign) -> None:
        batch = self._doubt
        if batch is None:
            return
        if batch.epoch != reign.epoch:
            self._drop_doubt()
            return
        self._apply(reign, batch, self.store.read_again(batch))
        self._doubt = None

    def _drop_doubt(self) -> None:
        """Give back what an earlier reign may have claimed: another leader, or a later reign, runs it."""
        if self._doubt is not None:
            self.store.disown(self._doubt)
            self._doubt = None

    def settle(self, reign: Reign, decision: Decision) -> None:
        """Claim in one step, then start what was won."""
        if decision.orphans:
            self._take_over(reign, decision.orphans)
        if decision.wants:
            self._claim(reign, Batch(str(uuid.uuid4()), reign.epoch, decision.wants))
        for job_id in decision.done:
            reign.pending.pop(job_id, None)

    def _claim(self, reign: Reign, batch: Batch) -> None:
        self._doubt = batch
        try:
            verdicts = self.store.claim(batch)
        except OutcomeUnknownError as error:
            self._report.unknown(len(batch.wants), error)
            raise
        except ClaimStoreError:
            self._doubt = None
            raise
        self._apply(reign, batch, verdicts)
        self._doubt = None

    def _take_over(self, reign: Reign, orphans: tuple[Orphan, ...]) -> None:
        self._taking = orphans
        try:
            for orphan, fire in zip(orphans, self.store.reclaim(orphans, reign.epoch), strict=True):
                reign.orphans.pop(orphan.fire.key, None)
                if fire is not None:
                    self._report.again(orphan, fire)
                    self._runs.start(self._registry[fire.job_id], fire)
        finally:
            self._taking = ()

    def _apply(self, reign: Reign, batch: Batch, verdicts: list[Verdict]) -> None:
        for want, verdict in zip(batch.wants, verdicts, strict=True):
            if verdict is Verdict.FENCED:
                self._lose(reign)
                return
            if verdict is not Verdict.WAIT:
                self._answered(reign, want, verdict)

    def _lose(self, reign: Reign) -> None:
        """A newer leader exists; an answer that came after its reign was over says nothing about the next."""
        if self._reign is reign:
            self.end()
            self._on_fenced()

    def _answered(self, reign: Reign, want: Want, verdict: Verdict) -> None:
        if want.origin == self._origin:
            reign.starts.pop(want.job_id, None)
        else:
            reign.answered[want.job_id] = want.due
        self._report.answered(want, verdict)
        if verdict is Verdict.OVERLAP or want.outcome is Outcome.SKIPPED_OVERLAP:
            self._say_skipped(want.job_id)
        elif verdict is Verdict.WON and want.outcome is Outcome.RUNNING:
            fire = Fire(want.due, want.job_id, reign.epoch, 1, want.origin)
            self._runs.start(self._registry[want.job_id], fire)


def run_forever(fires: Fires, stop: threading.Event) -> None:
    """The firing thread: rounds until `stop`, whatever goes wrong in one of them."""
    while not stop.is_set():
        try:
            pause = fires.run_once()
        except ArgusError as error:
            if str(error) != fires.problem:
                fires.problem = str(error)
                _log.error("nothing fires: %s", error)
            pause = IDLE
        except Exception as error:
            problem = f"a round of fires failed with {type(error).__name__}: {error}"
            if problem != fires.problem:
                fires.problem = problem
                _log.exception("a round of fires failed")
            pause = IDLE
        if pause > 0:
            fires.wake.wait(pause)
        fires.wake.clear()
