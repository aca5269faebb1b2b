"""A simulated application: jobs that fire, containers that log, a lock that is held; all from one seed.

It knows the truth, and keeps it apart from what it writes into its logs.
"""

from __future__ import annotations

import heapq
import itertools
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from croniter import croniter

from argus_sched import due_times
from argus_sched.agent.packs import DatabaseSpec, JobsCheck, JobSpec, LockCheck, LogSpec, Pack
from argus_sched.agent.ports import LockRow, LockSample
from argus_sched.errors import SourceError
from tests.fakes.docker_daemon import FakeContainer, FakeDocker

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)
KEY = 911000001


@dataclass
class Job:
    """One job of the application, as it really is."""

    id: str
    name: str
    interval: timedelta
    grace: timedelta
    cron: str = ""
    takes: timedelta = SECOND
    max_run: timedelta | None = None
    alive: bool = True
    raises: bool = False
    spoken_as: str = ""
    early: timedelta = timedelta(0)
    runs: list[datetime] = field(default_factory=list)
    since: datetime | None = None  # of a job that never ran: when it was promised
    ahead: timedelta = timedelta(0)  # of the clock that the application lives by

    @property
    def limit(self) -> timedelta:
        return self.interval + self.grace

    @property
    def trigger_text(self) -> str:
        if not self.cron:
            return f"interval[{self.interval}]"
        minute, hour, *_ = self.cron.split()
        return f"cron[minute='{minute}', hour='{hour}']" if hour != "*" else f"cron[minute='{minute}']"

    def spec(self) -> JobSpec:
        """What the pack promises."""
        trigger = due_times.cron(self.cron) if self.cron else due_times.Every(self.interval)
        return JobSpec(self.id, self.name, trigger, self.grace, self.interval, max_run=self.max_run)

    def next_due(self, after: datetime) -> datetime:
        """The next fire after `after`, which is one for an interval."""
        if not self.cron:
            return after + self.interval
        found: datetime = croniter(self.cron, after + self.ahead).get_next(datetime)
        return found - self.ahead

    def is_stale(self, at: datetime) -> bool:
        """Whether the job has not run for longer than it may."""
        if not self.runs:
            return self.since is not None and at > self.since + self.limit
        if not self.cron:
            return at > self.runs[-1] + self.limit
        last = self.runs[-1] + timedelta(seconds=5)  # early by less counts for the due time
        return at > self.next_due(last) + self.grace


class World:
    """The application `labs` in the container `web`, and everything that can happen to it."""

    def __init__(
        self, rng: random.Random, start: datetime, folder: Path, docker: FakeDocker, *, by_file: bool
    ) -> None:
        self.rng = rng
        self.now = start
        self.folder = folder
        self.docker = docker
        self.by_file = by_file
        self.host_ahead = timedelta(0)
        self.agent_ahead = timedelta(0)
        self.zone = UTC
        self.speaks = True  # the logger stands at INFO
        self.up = False
        self.paused = False
        self.keeps_phase = rng.random() < 0.5  # a job store outside the process
        self.starts: list[datetime] = []
        self.holes: list[datetime] = []  # when a container was replaced, and its last lines with it
        self.running: dict[str, datetime] = {}
        self.next_holders: list[list[LockRow]] = []
        self.labels: dict[str, str] = {}
        self.log_spec = LogSpec(container="web")
        self.tty = False
        self.driver_options: dict[str, str] = {}
        self.jobs: list[Job] = []
        self.holders = [_holder(4711)]
        self.database_problem = ""
        self._events: list[tuple[datetime, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._lines: dict[str, str] = {}
        self.web = self.create("web")
        docker.date = lambda: self.now + self.host_ahead

    # containers

    def create(self, name: str) -> FakeContainer:
        """A new container, its log empty."""
        stamp = _rfc(self.now + self.host_ahead)
        container = self.docker.add(
            name,
            id=f"{self.rng.getrandbits(256):064x}",
            created=stamp,
            started=stamp,
            tty=self.tty,
            labels=dict(self.labels),
            driver_options=self.driver_options,
        )
        if self.by_file:
            container.log_path = str(self.folder / f"{container.id}-json.log")
            Path(container.log_path).touch()
        return container

    def start(self) -> None:
        """The scheduler starts, in the container `web`; a memory job store counts intervals from here."""
        self.up = True
        self.paused = False
        self.starts.append(self.now)
        self.web.running = True
        self.web.started = _rfc(self.now + self.host_ahead)
        self._events = []
        self.running = {}
        self.say("INFO:apscheduler.scheduler:Scheduler started")
        for job in self.jobs:
            job.ahead = self.host_ahead
            self.plan(job)

    def plan(self, job: Job) -> None:
        """Put the job's next fire on the calendar."""
        base = self.now
        if self.keeps_phase and job.runs and not job.cron:
            missed = (self.now - job.runs[-1]) // job.interval
            base = job.runs[-1] + missed * job.interval
        self.plan_after(job, base)

    def plan_after(self, job: Job, instant: datetime) -> None:
        """Put the fire that follows `instant` on the calendar."""
        due = job.next_due(instant)
        self.at(due - job.early, lambda: self._fire(job, due))

    def stop(self) -> None:
        """The container ends; its log stays."""
        self.up = False
        self.web.running = False
        self._events = []

    def recreate(self, pause: timedelta) -> None:
        """A deploy: the container is replaced and its log with it."""
        self.stop()
        self.docker.remove("web")
        self.advance(self.now + pause)
        self.web = self.create("web")
        self.holes.append(self.now)
        self.advance(self.now + timedelta(seconds=self.rng.uniform(0.5, 8)))
        self.start()

    # time

    def at(self, when: datetime, what: Callable[[], None]) -> None:
        """Do `what` at `when`, unless the scheduler stops before."""
        heapq.heappush(self._events, (when, next(self._numbers), what))

    def advance(self, until: datetime) -> None:
        """Let everything happen that is due by `until`."""
        while self._events and self._events[0][0] <= until:
            when, _, what = heapq.heappop(self._events)
            self.now = max(self.now, when)
            what()
        self.now = max(self.now, until)  # a run may begin a moment after its due time

    def _fire(self, job: Job, due: datetime) -> None:
        self.plan_after(job, due)
        if not job.alive or self.paused:
            return
        if job.id in self.running:
            text = f"Execution of job {self._quoted(job, due)} skipped: maximum number of running instances reached (1)"
            self.say(f"WARNING:apscheduler.scheduler:{text}")
            return
        self.now += timedelta(seconds=self.rng.uniform(0, 0.9))
        self.run(job, due)

    def run(self, job: Job, due: datetime) -> None:
        """The job runs now, for the fire that was due at `due`."""
        job.runs.append(self.now)
        self.running[job.id] = self.now
        local = (due + self.host_ahead).astimezone(self.zone)
        scheduled = f"{local:%Y-%m-%d %H:%M:%S.%f}{local:%z}"
        scheduled = f"{scheduled[:-2]}:{scheduled[-2:]}"
        text = f"Running job {self._quoted(job, due)} (scheduled at {scheduled})"
        self._lines[job.id] = f"INFO:apscheduler.executors.default:{text}"
        self.say(self._lines[job.id])
        self.at(self.now + job.takes, lambda: self._end(job, due))

    def run_all(self) -> None:
        """Every job runs now."""
        for job in self.jobs:
            if job.alive and job.id not in self.running:
                self.run(job, self.now)

    def repeat(self, job: Job, container: FakeContainer) -> None:
        """Another process runs the job's last fire once more."""
        self.say(self._lines[job.id], container)

    def _end(self, job: Job, due: datetime) -> None:
        self.running.pop(job.id, None)
        if not job.raises:
            self.say(f"INFO:apscheduler.executors.default:Job {self._quoted(job, due)} executed successfully")
            return
        self.say(f"ERROR:apscheduler.executors.default:Job {self._quoted(job, due)} raised an exception")
        self.say("Traceback (most recent call last):")
        self.say("ValueError: no such user")

    def _quoted(self, job: Job, due: datetime) -> str:
        after = (job.next_due(due) + self.host_ahead).astimezone(self.zone)
        return f'"{job.spoken_as or job.name} (trigger: {job.trigger_text}, next run at: {after:%Y-%m-%d %H:%M:%S %Z})"'

    # logs

    def say(self, text: str, container: FakeContainer | None = None) -> None:
        """One line of the application; what is below WARNING only where the logger lets it through."""
        if text.startswith("INFO:apscheduler") and not self.speaks:
            return
        self.write(text, container)

    def write(self, text: str, container: FakeContainer | None = None, *, ended: bool = True) -> None:
        """One record of the log, whoever wrote it."""
        container = container or self.web
        known = len(container.stored)
        container.log(text, self.now + self.host_ahead, ended=ended)
        if self.by_file:
            with Path(container.log_path).open("ab") as file:
                for piece in container.stored[known:]:
                    record = {"log": piece.text.decode(), "stream": piece.stream, "time": piece.at}
                    file.write(json.dumps(record).encode() + b"\n")

    @property
    def log_file(self) -> Path:
        """The json-file of the container `web`."""
        return Path(self.web.log_path)

    def rotate(self, kept: int) -> None:
        """The driver begins a new file, and keeps `kept` of them."""
        if kept == 1:
            self.web.stored.clear()
        if not self.by_file:
            return
        names = [self.log_file, *(Path(f"{self.web.log_path}.{number}") for number in range(1, kept))]
        for younger, older in reversed(list(itertools.pairwise(names))):
            if younger.exists():
                younger.rename(older)
        self.log_file.unlink(missing_ok=True)
        self.log_file.touch()

    def chatter(self) -> None:
        """A few lines that have nothing to do with jobs."""
        for _ in range(self.rng.randrange(4)):
            self.write(
                f'INFO: 10.0.0.{self.rng.randrange(255)} "GET /api/{self.rng.getrandbits(32):x} HTTP/1.1" 200'
            )

    # what the pack says

    def pack(self, jobs: list[JobSpec]) -> Pack:
        """The application's pack, with these jobs."""
        checks = (
            JobsCheck("scheduler_jobs", tuple(jobs)),
            LockCheck("scheduler_lock", KEY, holder_name="scheduler"),
        )
        return Pack("labs", "labs.yaml", self.log_spec, (DatabaseSpec(dsn_env="DSN"),), checks)

    def sample(self, key: int) -> LockSample:
        """What the lock view of the database shows."""
        if self.database_problem:
            raise SourceError(self.database_problem)
        holders = self.next_holders.pop(0) if self.next_holders else self.holders
        rows = tuple(holders) if key == KEY else ()
        return LockSample(rows, False, self.now, "db:5432", "7", "argus", "db:5432/7")


def _holder(pid: int, **more: object) -> LockRow:
    facts = {
        "pid": pid,
        "mode": "ExclusiveLock",
        "granted": True,
        "state": "idle",
        "application_name": "scheduler",
        "client_addr": "10.0.0.7",
        "state_seconds": 0.3,
        "transaction_seconds": None,
        "wait_seconds": None,
    }
    return LockRow(**{**facts, **more})  # type: ignore[arg-type]  # the caller knows the fields


holder = _holder


def _rfc(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f") + "000Z"
