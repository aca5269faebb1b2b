"""One worker of a run: an ordinary application of the scheduler whose jobs write down that they ran.

    python -m argus_sched.harness.worker 1      one plain process
    python -m argus_sched.harness.worker 2      a uvicorn parent with two workers, each with a scheduler

What it writes survives kill -9, since each line is one write to a file: the runs of all workers to
`effects.jsonl`, what it believes to a file of its own. SIGUSR1 makes it fork a child that keeps its sockets,
SIGUSR2 makes it read its clock's error anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import inf
from pathlib import Path
from typing import Any

from argus_sched import Fire, Scheduler, Timing, cron, due_times, every
from argus_sched.clock import SystemClock
from argus_sched.harness.aftermath import end_with_parent
from argus_sched.harness.diary import Diary, Lines
from argus_sched.harness.expected import Plan
from argus_sched.harness.history import Born, Finished, Service, Started
from argus_sched.harness.settings import WorkerSettings
from argus_sched.harness.stop_request import StopRequest

SAMPLE = 0.05


class SteppedClock(SystemClock):
    """The machine's clock, wrong by `ahead` seconds; the clock that counts elapsed time cannot be stepped."""

    def __init__(self) -> None:
        self.ahead = timedelta(0)

    def now(self) -> datetime:
        return super().now() + self.ahead


class LeaderService:
    """A leader-only service that does nothing but say when it runs."""

    def __init__(self, name: str, lines: Lines) -> None:
        self._name = name
        self._lines = lines

    def start(self) -> None:
        self._lines.write(Service(time.time(), self._name, True))

    def stop(self) -> None:
        self._lines.write(Service(time.time(), self._name, False))


@dataclass(frozen=True)
class Place:
    """Where this worker was started, from the environment."""

    folder: Path
    slot: str
    dsn: str
    name: str

    @classmethod
    def here(cls) -> Place:
        """The place of this process; births are counted because the pids of containers are all alike."""
        environment = os.environ
        slot, births = environment["ARGUS_HARNESS_SLOT"], environment["ARGUS_HARNESS_BIRTH"]
        name = f"{slot}.{births}.{os.getpid()}"
        return cls(Path(environment["ARGUS_HARNESS_FOLDER"]), slot, environment["ARGUS_HARNESS_DSN"], name)


class HarnessWorker:
    """The scheduler of one worker, its jobs, and what it writes down."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.settings = WorkerSettings.read(place.folder)
        self.clock = SteppedClock()
        self._own = Lines(place.folder / "workers" / f"{place.name}.jsonl")
        self._effects = Lines(place.folder / "effects.jsonl")
        self._diary = Diary(place.name, self._own, self.clock)
        self._stopping = threading.Event()
        self.scheduler = self._build()

    def start(self) -> None:
        """Take part."""
        signal.signal(signal.SIGUSR1, lambda *_: self._fork())
        signal.signal(signal.SIGUSR2, lambda *_: self._read_clock())
        self.scheduler.start()
        instance = self.scheduler.status().instance
        self._diary.begin(Born(time.time(), self.place.name, self.place.slot, os.getpid(), instance))
        threading.Thread(target=self._watch, name="harness-diary", daemon=True).start()

    def stop(self) -> None:
        """Leave in good order."""
        self._stopping.set()
        self.scheduler.stop()
        self._diary.note("stopped", 0, None)

    def _build(self) -> Scheduler:
        settings = self.settings
        elects = settings.coordination == "leader"
        scheduler = Scheduler(
            self.place.dsn,
            namespace=settings.namespace,
            environment="production",
            clock=self.clock,
            on_event=self._hear,
            coordination="leader" if elects else "every_worker",
            claims="redis" if settings.coordination == "redis" else "postgres",
            redis_url=settings.redis or None,
            timing=getattr(Timing, settings.profile)(),
            key=settings.key,
            migrate=True,
            without=settings.without,
        )
        for plan in settings.plans:
            scheduler.add_job(self._body(plan), trigger_of(plan), **options_of(plan))
        if elects:
            scheduler.leader_service("harness", LeaderService(self.place.name, self._own))
        return scheduler

    def _body(self, plan: Plan) -> Callable[[Fire], None]:
        name, effects, seconds = self.place.name, self._effects, plan.body_ms / 1000.0

        def body(fire: Fire) -> None:
            due = milliseconds(fire.due)
            effects.write(Started(time.time(), name, plan.job, due, fire.epoch, fire.attempt))
            time.sleep(seconds)
            effects.write(Finished(time.time(), name, plan.job, due, fire.attempt))

        return body

    def _hear(self, event: str, fields: Mapping[str, Any]) -> None:
        """Note a turn the moment it is told, from the thread that made it."""
        if event in ("elected", "demoted", "heir", "standby", "stopped"):
            self._note(str(fields.get("cause", "")))

    def _note(self, cause: str = "") -> None:
        status = self.scheduler.status()
        until = None if status.trusted_until in (0.0, inf) else status.trusted_until
        self._diary.note(str(status.role), status.epoch, until, cause)

    def _watch(self) -> None:
        # A tick that renews the trust is no turn and is not told: it is sampled.
        while not self._stopping.wait(SAMPLE):
            self._note()

    def _read_clock(self) -> None:
        path = self.place.folder / f"{self.place.name}.skew"
        self.clock.ahead = timedelta(seconds=float(path.read_text()))

    def _fork(self) -> None:
        # The C library's fork, as an extension would call it: Python's own would tell the scheduler.
        libc = ctypes.CDLL(None)
        child = libc.fork()
        while child == 0:
            libc.pause()
        (self.place.folder / f"{self.place.name}.child").write_text(f"{child}")


def trigger_of(plan: Plan) -> due_times.Trigger:
    """The scheduler's trigger for a plan."""
    if plan.minutes:
        return cron(f"*/{plan.minutes} * * * *", plan.zone)
    return every(seconds=plan.every_ms / 1000, phase=timedelta(milliseconds=plan.phase_ms))


def options_of(plan: Plan) -> dict[str, Any]:
    """The scheduler's options for a plan; every due time is wanted, however late."""
    return {
        "id": plan.job,
        "name": plan.name,
        "catch_up": "all",
        "catch_up_window": timedelta(minutes=10),
        "max_instances": plan.max_instances,
        "on_interrupted": "at_least_once" if plan.at_least_once else "at_most_once",
        "jitter": timedelta(milliseconds=plan.jitter_ms),
    }


def milliseconds(instant: datetime) -> int:
    """Whole milliseconds since the Unix epoch."""
    return (instant - due_times.EPOCH) // timedelta(milliseconds=1)


def application() -> Any:
    """The ASGI application of one uvicorn worker, with the scheduler in its lifespan."""
    from starlette.applications import Starlette

    end_with_parent()
    parent = multiprocessing.parent_process()
    if parent is not None and not parent.is_alive():
        raise SystemExit("the parent has ended")
    write_logs()
    worker = HarnessWorker(Place.here())

    @contextlib.asynccontextmanager
    async def lifespan(_: object) -> AsyncIterator[None]:
        worker.start()
        yield
        await asyncio.to_thread(worker.stop)

    return Starlette(lifespan=lifespan)


def run_plain() -> None:
    """One worker until SIGTERM."""
    asked = StopRequest()
    worker = HarnessWorker(Place.here())
    worker.start()
    asked.wait()
    worker.stop()


def run_uvicorn(count: int) -> None:
    """A uvicorn parent of `count` workers until SIGTERM."""
    import uvicorn

    place = Place.here()
    socket = str(place.folder / f"{place.slot}.sock")
    uvicorn.run(
        "argus_sched.harness.worker:application", factory=True, workers=count, uds=socket, log_level="warning"
    )


def write_logs() -> None:
    """Everything from INFO up to standard error, as a service in a container logs."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s", stream=sys.stderr
    )


def main() -> None:
    """Fill one slot: with a plain process, or with a parent of as many as the argument says."""
    write_logs()
    count = int(sys.argv[1])
    run_plain() if count == 1 else run_uvicorn(count)


if __name__ == "__main__":
    main()
