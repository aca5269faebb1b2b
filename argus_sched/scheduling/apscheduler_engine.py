"""The engine: APScheduler says when something is due, and prints its own lines around each run.

APScheduler submits one job at a time while it holds the lock of its job store, so the executor here only
signals. What it signals is a job, not a due time: which due times are meant follows from the watermark. Its
own rules for late runs never apply, since a wake-up is always moved past "now".
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from argus_sched.clock import Clock, SystemClock
from argus_sched.errors import MissingExtraError
from argus_sched.scheduling.job import Job

try:
    from apscheduler.executors.base import BaseExecutor, run_job
    from apscheduler.schedulers.background import BackgroundScheduler
    from apscheduler.triggers.base import BaseTrigger
except ImportError as error:
    raise MissingExtraError("apscheduler", "scheduler") from error

ALIAS = "default"
# APScheduler's loggers: its lines are what the agent, and every existing log search, goes by.
RUN_LOGGER = f"apscheduler.executors.{ALIAS}"
_scheduler_log = logging.getLogger("apscheduler.scheduler")

Signal = Callable[[str], None]
Broken = Callable[[str, str], None]


class ClockZone(tzinfo):
    """UTC as an injected clock tells it: APScheduler asks `datetime.now(zone)`, and a zone may answer.

    Times that carry this zone are the clock's; `fromutc` is called for "now" alone, since a time that is in
    this zone already is left as it is.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def fromutc(self, _: datetime) -> datetime:
        return self._clock.now().replace(tzinfo=self)

    def utcoffset(self, _: datetime | None) -> timedelta:
        return timedelta(0)

    def dst(self, _: datetime | None) -> timedelta:
        return timedelta(0)

    def tzname(self, _: datetime | None) -> str:
        return "UTC"


class WakeUps(BaseTrigger):  # type: ignore[misc]  # apscheduler ships no types
    """The moments at which one job is to be signalled: each due time, delayed by its jitter."""

    __slots__ = ("_broken", "_job", "_zone")

    def __init__(self, job: Job, broken: Broken, zone: tzinfo = UTC) -> None:
        self._job = job
        self._broken = broken
        self._zone = zone

    def __str__(self) -> str:
        return str(self._job.trigger)

    def get_next_fire_time(self, previous: datetime | None, now: datetime) -> datetime | None:
        """The first moment later than both; None takes the job out, after its `broken` was told."""
        after = (max(previous, now) if previous else now).replace(tzinfo=UTC)
        try:
            found = wake_after(self._job, after)
        except Exception as error:
            # An exception in here would end APScheduler's thread, and with it every other job.
            self._broken(self._job.id, f"its next due time cannot be computed: {error}")
            return None
        if found is not None and found <= after:
            self._broken(self._job.id, f"its trigger {self} does not move on from {after.isoformat()}")
            return None
        return None if found is None else found.replace(tzinfo=self._zone)


def wake_after(job: Job, instant: datetime) -> datetime | None:
    """The first moment after `instant` at which the job is to be signalled; None when there is none."""
    if job.jitter:
        last = job.trigger.latest_at_or_before(instant)
        if last is not None and last + job.delay(last) > instant:
            return last + job.delay(last)
    due = job.trigger.next_after(instant)
    return None if due is None else due + job.delay(due)


class SignalExecutor(BaseExecutor):  # type: ignore[misc]  # apscheduler ships no types
    """An executor that runs nothing: it passes the job's id on, and counts no instances of its own."""

    def __init__(self, signal: Signal) -> None:
        super().__init__()
        self._signal = signal

    def submit_job(self, job: Any, run_times: list[datetime]) -> None:  # noqa: ARG002 - APScheduler's signature
        self._signal(job.id)

    def _do_submit_job(self, job: Any, run_times: list[datetime]) -> None:
        raise NotImplementedError


class Loop(BackgroundScheduler):  # type: ignore[misc]  # apscheduler ships no types
    """A BackgroundScheduler that remembers when it last looked."""

    last_turn = 0.0

    def _process_jobs(self) -> Any:
        seconds = super()._process_jobs()
        self.last_turn = SystemClock().elapsed()
        return seconds


class Announced:
    """One run as APScheduler's `run_job` sees it: the job's line, and this run's own body."""

    __slots__ = ("_job", "func")
    args: tuple[()] = ()
    kwargs: dict[str, Any] = {}  # noqa: RUF012 - read only
    misfire_grace_time = None

    def __init__(self, job: Any, func: Callable[[], object]) -> None:
        self._job = job
        self.func = func

    @property
    def id(self) -> str:
        return str(self._job.id)

    def __str__(self) -> str:
        return str(self._job)


class Engine:
    """One APScheduler over all jobs. A stopped or broken one is not mended: `rebuild` makes a fresh one."""

    def __init__(self, signal: Signal, broken: Broken, clock: Clock) -> None:
        self._signal = signal
        self._broken = broken
        self._zone: tzinfo = UTC if type(clock) is SystemClock else ClockZone(clock)
        self._lock = threading.Lock()
        self._loop: Loop | None = None
        self._jobs: dict[str, Any] = {}

    def start(self, jobs: Iterable[Job]) -> None:
        """Build a scheduler with these jobs and start its thread."""
        with self._lock:
            self._loop = loop = Loop(timezone=self._zone, executors={ALIAS: SignalExecutor(self._signal)})
            self._jobs = {}
            for job in jobs:
                self._add(loop, job)
            loop.start()
            # Its first look is still to come; taking many jobs in may have lasted longer than any patience.
            loop.last_turn = SystemClock().elapsed()

    def rebuild(self, jobs: Iterable[Job]) -> None:
        """Replace a scheduler whose thread died or hangs."""
        self.stop()
        self.start(jobs)

    def stop(self) -> None:
        """End the scheduler's thread; runs go on."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None and loop.running:
            if loop._thread.is_alive():
                loop.shutdown(wait=False)
            else:
                loop.state = 0

    def add(self, job: Job) -> None:
        """Take in a job that was declared after the start."""
        with self._lock:
            if self._loop is not None:
                self._add(self._loop, job)

    def _add(self, loop: Loop, job: Job) -> None:
        self._jobs[job.id] = loop.add_job(
            _not_run_here,
            WakeUps(job, self._broken, self._zone),
            id=job.id,
            name=job.name,
            misfire_grace_time=None,
            coalesce=True,
            max_instances=job.max_instances,
        )

    def nudge(self) -> None:
        """Make it look at the clock: its sleep does not notice that the wall clock was set forward."""
        loop = self._loop
        if loop is not None:
            loop.wakeup()

    def problem(self, patience: float = 10.0) -> str:
        """Why the engine is not working; empty while it is."""
        loop = self._loop
        if loop is None:
            return "the engine is not running"
        thread = getattr(loop, "_thread", None)
        if thread is None or not thread.is_alive():
            return "APScheduler's thread is not alive"
        silent = SystemClock().elapsed() - loop.last_turn
        return f"APScheduler has not looked at its jobs for {silent:.0f} s" if silent > patience else ""

    def next_run(self, job_id: str) -> datetime | None:
        """When APScheduler will look at this job next."""
        job = self._jobs.get(job_id)
        return getattr(job, "next_run_time", None)

    def execute(self, job: Job, body: Callable[[], object], due: datetime) -> BaseException | None:
        """Run a body through APScheduler's own `run_job`, which prints its lines; what it raised, or None."""
        announced = Announced(self._jobs[job.id], body)
        event = run_job(announced, ALIAS, [due], RUN_LOGGER)[0]
        raised: BaseException | None = getattr(event, "exception", None)
        return raised

    def say_skipped(self, job: Job) -> None:
        """Print APScheduler's line for a due time that fell on too many running instances."""
        _scheduler_log.warning(
            'Execution of job "%s" skipped: maximum number of running instances reached (%d)',
            self._jobs[job.id],
            job.max_instances,
        )


def _not_run_here() -> None:
    """What APScheduler holds as the function of every job; bodies are bound to their fire when they run."""
