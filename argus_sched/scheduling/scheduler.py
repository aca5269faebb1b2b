"""The facade: what an application imports, declares its jobs on, and starts."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import os
import threading
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from argus_sched import due_times
from argus_sched.clock import Clock, SystemClock
from argus_sched.errors import ArgusError, JobError, SchedulerError, SettingsError
from argus_sched.scheduling import log_lines
from argus_sched.scheduling import metrics as metrics_module
from argus_sched.scheduling.auto_disable import AlertHook, AutoDisable
from argus_sched.scheduling.claims import RunNow
from argus_sched.scheduling.events import Events, Listener
from argus_sched.scheduling.job import Job, JobOptions, JobRegistry, declare
from argus_sched.scheduling.leader_services import LeaderService, LeaderServices
from argus_sched.scheduling.leadership import Role, Term
from argus_sched.scheduling.metrics import Metrics
from argus_sched.scheduling.settings import SchedulerOptions, Settings

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

    from argus_sched.scheduling.machine import Machine

Function = TypeVar("Function", bound=Callable[..., Any])

_log = logging.getLogger("argus_sched.scheduling")


@dataclass(frozen=True)
class JobStatus:
    """One declared job; `next_run` is when it is due next (aware, UTC), None when never again."""

    id: str
    name: str
    trigger: str
    next_run: datetime | None


@dataclass(frozen=True)
class Status:
    """What this worker is and does; `trusted_until` in elapsed seconds of the clock, 0 unless it leads."""

    role: Role
    namespace: str
    instance: str
    epoch: int
    term: Term | None
    trusted_until: float
    firing: bool
    unguarded: bool
    problem: str
    problems: tuple[str, ...]
    services: tuple[str, ...]
    jobs: tuple[JobStatus, ...]


class Scheduler:
    """Jobs of one namespace, started in every worker; one of them leads.

    Declare jobs with the decorator `job` or with `add_job`; then `start()` and `stop()`, or `lifespan` for
    Starlette and FastAPI, or `cleanup_ctx` for aiohttp. `start` never raises and never waits for a database:
    what is wrong is logged, and stands in `status().problem`.

    What is wrong raises where it is written: SettingsError here, JobError at a job. In production it must
    not keep the application from booting: it is logged and listed in `problems` instead, a wrong job is left
    out while the others run, and a scheduler with wrong settings does not start. `options` are those of
    `Settings`.
    """

    def __init__(
        self,
        dsn: str | None = None,
        *,
        namespace: str,
        environment: str | None = "production",
        clock: Clock | None = None,
        on_event: Listener | None = None,
        on_auto_disable: AlertHook | None = None,
        **options: Unpack[SchedulerOptions],
    ) -> None:
        options["without"] = frozenset(options.get("without", ()))
        self.settings = Settings.of(namespace=namespace, dsn=dsn, environment=environment, **options)
        self.problems: list[str] = []
        self._failure = ""
        try:
            self.settings.check()
        except SettingsError as error:
            self._leave_out("the scheduler", error)
        self._clock = clock or SystemClock()
        self._registry = JobRegistry()
        self._metrics = Metrics()
        self._listener = on_event
        self._auto_disable = AutoDisable(self._registry, on_auto_disable)
        self._events = Events(self._hear, namespace=namespace)
        self._services = LeaderServices(self._clock, self._events)
        self._machine: Machine | None = None
        self._lock = threading.Lock()

    # Declaring.

    def job(
        self, trigger: due_times.Trigger, **options: Unpack[JobOptions]
    ) -> Callable[[Function], Function]:
        """A decorator that declares the function as a job; `options` are those of `add_job`."""

        def declared(func: Function) -> Function:
            self.add_job(func, trigger, **options)
            return func

        written: Any = trigger
        if inspect.isfunction(written):
            # A decorator without its parentheses is given the function, and nobody else would notice.
            what = f"job {written.__name__!r} has no trigger: write @scheduler.job(every(...))"
            self._leave_out("a job", JobError(what))
            return written
        return declared

    def add_job(
        self, func: Callable[..., Any], trigger: due_times.Trigger, **options: Unpack[JobOptions]
    ) -> Job | None:
        """Declare `func` as a job and return it; a wrong one raises JobError, in production it is None.

        Options: id, name, catch_up ("latest", "all", "skip"), coalesce, catch_up_window, max_instances,
        on_interrupted ("at_most_once", "at_least_once"), jitter, first_run_after.
        """
        try:
            job = declare(func, trigger, now=self._clock.now(), **options)
            self._registry.add(job)
        except JobError as error:
            self._leave_out("a job", error)
            return None
        machine = self._running()
        if machine is not None:
            machine.add(job)
        return job

    def leader_service(self, name: str, service: LeaderService) -> None:
        """Run `service` on the leader alone: `start()` after the deferral, `stop()` on demotion.

        Raises SettingsError for what has neither, and where no leader is elected, since each worker would run
        it; in production the service is left out instead.
        """
        try:
            check_service(name, service, self.settings)
        except SettingsError as error:
            self._leave_out("a leader service", error)
        else:
            self._services.add(name, service)

    def _leave_out(self, what: str, error: ArgusError) -> None:
        """Raise `error`; in production put it on record instead, so that everything else runs."""
        if not self.settings.production:
            raise error
        self.problems.append(str(error))
        _log.error("%s is left out: %s", what, error)

    @property
    def jobs(self) -> list[Job]:
        """The declared jobs."""
        return list(self._registry)

    # The life.

    def start(self) -> None:
        """Join in; returns at once, never raises. A second call does nothing; a forked child starts anew."""
        try:
            with self._lock:
                if self._running() is None:
                    self.settings.check()
                    self._machine = self._build()
                    self._machine.start()
                    self._failure = ""
        except Exception as error:
            self._failure = str(error)
            _log.error("the scheduler is not running: %s", error)

    @property
    def running(self) -> bool:
        """True from `start` to `stop` in this process, whether or not it leads or its database is there."""
        return self._running() is not None

    def stop(self, timeout: float | None = None) -> bool:
        """Hand leadership over, let runs end for at most `timeout` seconds; True when all of them did."""
        with self._lock:
            machine, self._machine = self._running(), None
        if machine is None:
            return True
        return machine.stop(self.settings.stop_timeout if timeout is None else timeout)

    @contextlib.asynccontextmanager
    async def lifespan(self, _: object = None) -> AsyncIterator[None]:
        """The lifespan of a Starlette or FastAPI application: `FastAPI(lifespan=scheduler.lifespan)`."""
        self.start()
        try:
            yield
        finally:
            await asyncio.to_thread(self.stop)

    async def cleanup_ctx(self, _: object = None) -> AsyncIterator[None]:
        """The same for aiohttp: `app.cleanup_ctx.append(scheduler.cleanup_ctx)`."""
        async with self.lifespan():
            yield

    # Looking and steering.

    def status(self) -> Status:
        """What this worker is at this moment."""
        machine = self._running()
        elector = machine.elector if machine else None
        term = elector.term if elector else None
        return Status(
            role=machine.role if machine else Role.STOPPED,
            namespace=self.settings.namespace,
            instance=machine.instance if machine else "",
            epoch=term.epoch if term else 0,
            term=term,
            trusted_until=elector.trusted_until if elector else 0.0,
            firing=machine.fires.firing if machine else False,
            unguarded=machine.fallback.active if machine else False,
            problem=self._problem(machine),
            problems=tuple(self.problems),
            services=self._services.running if machine else (),
            jobs=tuple(self._job_status(job) for job in self._registry),
        )

    def metrics(self) -> Collector:
        """A prometheus-client collector: `registry.register(scheduler.metrics())`."""
        return metrics_module.collector(self._metrics, self.settings.namespace, self._standing)

    def run_now(self, job_id: str) -> RunNow:
        """Run a job here at once; the answer holds the fire, or the reason why not.

        Raises JobError for an unknown job, SchedulerError when the scheduler is not running, ClaimStoreError
        when its store is away.
        """
        return self._needed().run_now(self._registry[job_id])

    def pause(self, job_id: str, *, by: str, reason: str) -> bool:
        """Switch a job off for a while, on every worker; False when it was off."""
        changed = self._switch(job_id, False, by, reason)
        if changed:
            log_lines.paused(job_id, self._registry[job_id].name, by, reason)
        return changed

    def disable(self, job_id: str, *, by: str, reason: str) -> bool:
        """Switch a job off on every worker; False when it was off."""
        changed = self._switch(job_id, False, by, reason)
        if changed:
            log_lines.disabled(job_id, self._registry[job_id].name, by, reason)
        return changed

    def enable(self, job_id: str, *, by: str, reason: str = "") -> bool:
        """Switch a job on again, from now, whoever switched it off; False when it was on."""
        changed = self._switch(job_id, True, by, reason)
        if changed:
            log_lines.enabled(job_id, self._registry[job_id].name, by)
        return changed

    resume = enable

    def resign(self, cooldown: float = 60.0) -> None:
        """Give leadership up and take no part in the election for `cooldown` seconds."""
        elector = self._needed().elector
        if elector is not None:
            elector.resign(cooldown)

    def _switch(self, job_id: str, enabled: bool, by: str, reason: str) -> bool:
        job = self._registry[job_id]
        check_words(by, reason)
        store = self._needed().store
        return store.switch(job.id, enabled, by, reason, self._clock.now())

    def _running(self) -> Machine | None:
        """The machine of this process: a forked child has the parent's object, but none of its threads."""
        machine = self._machine
        return machine if machine is not None and machine.pid == os.getpid() else None

    def _needed(self) -> Machine:
        machine = self._running()
        if machine is None:
            reason = self._problem(None) or "call start() first"
            raise SchedulerError(f"the scheduler is not running in this process: {reason}")
        return machine

    def _problem(self, machine: Machine | None) -> str:
        if machine is None:
            forked = self._machine is not None
            return "started before a fork: call start() in this process" if forked else self._failure
        return machine.problem

    def _job_status(self, job: Job) -> JobStatus:
        return JobStatus(job.id, job.name, str(job.trigger), job.trigger.next_after(self._clock.now()))

    def _standing(self) -> tuple[bool, int, float]:
        status = self.status()
        left = max(0.0, status.trusted_until - self._clock.elapsed()) if status.trusted_until else 0.0
        return status.role is Role.LEADER, status.epoch, left

    def _hear(self, event: str, fields: Any) -> None:
        if event == "demoted":
            self._metrics.demotion_seconds.observe(fields.get("silence_ms", 0.0) / 1000)
        if event == "elected":
            self._metrics.changed("elected")
        if self._listener is not None:
            self._listener(event, fields)

    def _build(self) -> Machine:
        # Imported here: a missing APScheduler must not keep an application from importing its scheduler.
        from argus_sched.scheduling.assembly import build

        instance = str(uuid.uuid4())
        self._events = Events(self._hear, namespace=self.settings.namespace, instance=instance)
        return build(
            self.settings,
            self._registry,
            self._services,
            self._events,
            self._metrics,
            self._clock,
            instance=instance,
            auto_disable=self._auto_disable,
        )


def check_words(by: object, reason: object) -> None:
    """Return when a switch of a job can be logged and kept with these words; else JobError."""
    if not isinstance(by, str) or not by.strip() or not by.isprintable():
        raise JobError(f"by={by!r} names nobody: say in one line who switches the job")
    if not isinstance(reason, str) or not " ".join(reason.split()).isprintable():
        raise JobError(f"reason={reason!r} cannot be kept: say it in printable text")


def check_service(name: str, service: object, settings: Settings) -> None:
    """Return when `service` can run on a leader; else SettingsError says why not."""
    if not settings.leads:
        raise SettingsError(
            f"leader service {name!r} needs coordination='leader', not {str(settings.coordination)!r}: "
            "without a leader every worker would run it"
        )
    for method in ("start", "stop"):
        if not callable(getattr(service, method, None)):
            raise SettingsError(f"leader service {name!r}, a {type(service).__name__}, has no {method}()")
