"""Runs of won fires in this process: they start only while trusted, and their ends wait to be recorded."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from datetime import datetime

from argus_sched.clock import Clock
from argus_sched.scheduling.claims import Outcome, Result
from argus_sched.scheduling.job import Fire, Job, TargetMissingError
from argus_sched.scheduling.pool import Pool
from argus_sched.scheduling.report import Report

Body = Callable[[], object]
# Runs a body with APScheduler's own lines around it; returns what it raised, or None.
Execute = Callable[[Job, Body, datetime], BaseException | None]

LONGEST_ERROR = 2000


class Runs:
    """What runs here. `on_free` is called after each end, `on_result` when something waits for the keeper."""

    def __init__(
        self,
        pool: Pool,
        execute: Execute,
        may_start: Callable[[Fire], bool],
        report: Report,
        clock: Clock,
    ) -> None:
        self._pool = pool
        self._execute = execute
        self._may_start = may_start
        self._report = report
        self._clock = clock
        self._lock = threading.Lock()
        self._open: dict[tuple[object, ...], Fire] = {}
        self._running: Counter[str] = Counter()
        self._results: list[Result] = []
        self._refused: list[Fire] = []
        self._empty = threading.Condition(self._lock)
        self.on_free: Callable[[], None] = lambda: None
        self.on_result: Callable[[], None] = lambda: None

    @property
    def free(self) -> int:
        """How many more fires may be claimed: a claimed fire starts at once or not at all."""
        return self._pool.size - len(self._open)

    @property
    def size(self) -> int:
        """How many fires may run at the same time."""
        return self._pool.size

    def running(self, job_id: str) -> int:
        """Runs of one job that are open here."""
        return self._running[job_id]

    @property
    def busy(self) -> bool:
        """True while anything runs, or waits to be recorded."""
        return bool(self._open or self._results or self._refused)

    def start(self, job: Job, fire: Fire) -> None:
        """Run a fire that this worker claimed."""
        with self._lock:
            self._open[(*fire.key, fire.attempt)] = fire
            self._running[job.id] += 1
        self._pool.submit(lambda: self._run(job, fire))

    def known(self) -> list[Fire]:
        """Every fire that runs here or whose end is not recorded yet."""
        with self._lock:
            waiting = [result.fire for result in self._results] + self._refused
            return list(self._open.values()) + waiting

    def take_results(self) -> list[Result]:
        """Ends to record, oldest first; hand them to `keep_results` when recording failed."""
        with self._lock:
            taken, self._results = self._results, []
            return taken

    def keep_results(self, results: list[Result]) -> None:
        """Put results back in front."""
        with self._lock:
            self._results = results + self._results

    def take_refused(self) -> list[Fire]:
        """Claimed fires that did not start, to be given back."""
        with self._lock:
            taken, self._refused = self._refused, []
            return taken

    def keep_refused(self, fires: list[Fire]) -> None:
        """Put fires that could not be given back in front again."""
        with self._lock:
            self._refused = fires + self._refused

    def refuse(self, *fires: Fire) -> None:
        """Queue fires to be given back."""
        with self._lock:
            self._refused += fires
        for fire in fires:
            self._report.given_back(fire)
        self.on_result()

    def wait(self, timeout: float) -> bool:
        """Wait until nothing runs here; False when `timeout` seconds were not enough."""
        with self._empty:
            return self._empty.wait_for(lambda: not self._open, timeout)

    def _run(self, job: Job, fire: Fire) -> None:
        result = None
        try:
            # The second look at trust: between claim and body the process may have been frozen.
            if self._may_start(fire):
                result = self._body(job, fire)
        finally:
            self._end(fire, result)

    def _body(self, job: Job, fire: Fire) -> Result:
        started = self._clock.now()
        self._report.started(fire, started)
        raised: BaseException | None
        try:
            raised = self._execute(job, body_of(job, fire), fire.due)
        except BaseException as error:
            # A log handler that failed: the body may have run, so this is no fire that can be given back.
            raised = error
        return Result(fire, outcome_of(raised), started, self._clock.now(), describe(raised))

    def _end(self, fire: Fire, result: Result | None) -> None:
        with self._empty:
            del self._open[(*fire.key, fire.attempt)]
            self._running[fire.job_id] -= 1
            if not self._running[fire.job_id]:
                del self._running[fire.job_id]
            if result is None:
                self._refused.append(fire)
            else:
                self._results.append(result)
            self._empty.notify_all()
        if result is None:
            self._report.given_back(fire)
        else:
            self._report.finished(result)
        self.on_free()
        self.on_result()


def body_of(job: Job, fire: Fire) -> Body:
    """The job's function with its fire bound, if it takes one; a coroutine runs on a loop of its own."""
    func = job.func

    def body() -> object:
        value = func(fire) if job.takes_fire else func()
        if hasattr(value, "__await__"):
            import asyncio

            # Never the web server's loop: a job that blocks must not stop requests.
            return asyncio.run(_awaited(value))
        return value

    return body


async def _awaited(value: object) -> object:
    return await value  # type: ignore[misc]  # `__await__` was looked for


def outcome_of(raised: BaseException | None) -> Outcome:
    """How a run counts that raised this, or nothing."""
    if raised is None:
        return Outcome.SUCCESS
    return Outcome.TARGET_MISSING if isinstance(raised, TargetMissingError) else Outcome.ERROR


def describe(raised: BaseException | None) -> str:
    """The error text a run row keeps: type and message, at most 2,000 characters."""
    if raised is None:
        return ""
    try:
        message = str(raised)
    except Exception:
        message = "its message cannot be read"
    # No store takes a NUL, nor half of a surrogate pair.
    text = f"{type(raised).__name__}: {message}".replace("\x00", "\\x00")
    return text.encode("utf-8", "backslashreplace").decode()[:LONGEST_ERROR]
