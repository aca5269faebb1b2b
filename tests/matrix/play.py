"""One play: a cell of the matrix acted out from one seed, pass by pass, under the oracle's eyes."""

from __future__ import annotations

import random
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from argus_sched.agent.config.pack_files import read_packs
from argus_sched.agent.config.settings import AgentSettings
from argus_sched.agent.packs import LogSpec
from argus_sched.agent.status import Status
from tests.fakes.bot_api import BotApi
from tests.fakes.docker_daemon import FakeDocker
from tests.matrix.oracle import Oracle, Truth, WrongError
from tests.matrix.stage import Stage, lines_of
from tests.matrix.table import Cell
from tests.matrix.world import HOUR, MINUTE, SECOND, Job, World

LINES, LOCK, DATABASE = "labs/scheduler-lines", "labs/scheduler_lock", "labs/database:labs"
FIRST_DAY = datetime(2026, 4, 7, tzinfo=UTC)
MEMORY = Path("/dev/shm")


class Play:
    """The stage, the world, and what is true of it."""

    def __init__(self, cell: Cell, seed: int, folder: Path, docker: FakeDocker, bot: BotApi) -> None:
        self.cell = cell
        self.rng = rng = random.Random(f"{cell.name}/{seed}")
        start = FIRST_DAY + timedelta(seconds=rng.uniform(0, 20 * 86400))
        self.world = World(rng, start, folder, docker, by_file=rng.random() < 0.35)
        self.stage = Stage(self.world, bot, anew=rng.random() < 0.5)
        self.oracle = Oracle()
        self.says: dict[str, Truth] = {}
        self.loose = False  # what is told cannot be foreseen pass by pass, only counted
        self.blind = False
        self.unknown_lock = False
        self.new_since: datetime | None = None  # when the first pass looked for the new job
        self.skewed = False  # the host's clock is known by dates that are cut to whole seconds
        self.doubt = False  # what was written is in doubt
        self.made = 0
        self.muted = False  # the scheduler runs and says nothing
        self.watched: list[Job] = []
        self.job = self._invent_jobs()
        self.about: list[str] = []

    # beginning

    def _invent_jobs(self) -> Job:
        rng = self.rng
        for number in range(rng.randint(2, 5)):
            interval = rng.choice((1, 2, 5, 10)) * MINUTE
            grace = rng.choice((None, 2 * MINUTE, 5 * MINUTE))
            self.add(Job(f"job{number}", f"job {number}", interval, grace or max(interval, 10 * MINUTE)))
        minute = rng.randrange(60)
        self.add(Job("hourly", "hourly report", HOUR, 3 * MINUTE, cron=f"{minute} * * * *"))
        name = rng.choice(("sync orders", "mail (late)", 'the "quoted" job', "app.jobs:clean_up, now"))
        interval = rng.choice((1, 2, 5)) * MINUTE
        return self.add(Job("hero", name, interval, rng.choice((2, 3, 5)) * MINUTE))

    def add(self, job: Job) -> Job:
        """One job more, in the application and in the pack."""
        self.world.jobs.append(job)
        self.watched.append(job)
        return job

    def begin(self, *, warm: timedelta = 70 * MINUTE) -> None:
        """The application has run for a while; then the agent's first passes."""
        self.world.start()
        self.world.advance(self.world.now + warm)
        self.passes(self.rng.randint(2, 4))

    def publish(self) -> None:
        """The pack as it is now, loaded by the next pass."""
        self.stage.packs = (self.world.pack([job.spec() for job in self.watched]),)

    @property
    def log(self) -> str:
        """The log's node in the target tree."""
        return f"labs/{self.world.log_spec.node}"

    def by_daemon(self) -> None:
        """The log is asked of the daemon."""
        self.world.by_file = False
        self.world.web.log_path = ""

    def by_reading_files(self) -> None:
        """The log is read from the daemon's json-file."""
        if not self.world.by_file:
            self.world.by_file = True
            self.world.web = self.world.create("web")

    def by_label(self) -> None:
        """The pack means every container with a label."""
        self.world.labels = self.world.web.labels = {"app": "web"}
        self.world.log_spec = LogSpec(label="app=web")

    @property
    def pack(self) -> str:
        """The subject that stands for the file of another application's pack."""
        return f"pack:{self.world.folder}/other.yaml"

    def write_pack(self, text: str) -> None:
        """Somebody deploys that file, which the passes read as `check` does."""
        path = self.world.folder / "other.yaml"
        path.write_text(text)
        self.stage.files = read_packs(AgentSettings(None, self.stage.state, (str(path),)), {})

    def lose_state(self) -> None:
        """Somebody deletes the agent's state file."""
        self.stage.leave()
        for path in self.world.folder.glob("state.db*"):
            path.unlink()

    def age_schema(self, steps: int) -> None:
        """The state file is of another version."""
        with closing(sqlite3.connect(self.stage.state)) as connection, connection:
            connection.execute("UPDATE schema_steps SET steps = steps + ?", (steps,))

    # passes

    def passes(self, count: int) -> None:
        """That many minutes, a pass in each."""
        for _ in range(count):
            self.world.chatter()
            self.world.advance(self.world.now + MINUTE)
            self.make_pass()

    def passes_until(self, holds: Callable[[], bool], most: int = 120) -> None:
        """A pass a minute until `holds`, and that pass too."""
        for _ in range(most):
            self.passes(1)
            if holds():
                return
        raise WrongError(f"the play did not come to its point within {most} passes")

    def make_pass(self) -> None:
        """One pass now, and the oracle's judgement."""
        at = self.world.now
        if not self.stage.packs:
            self.publish()
        truths = self.truths()
        report = self.stage.make_pass()
        self.made += 1
        lines = lines_of(self.stage.new_messages())
        self.oracle.told += lines
        if report is None:
            return
        self.oracle.judge(report, truths, at)
        news = self.oracle.expect(truths, at)
        if not self.loose:
            self.oracle.compare(news, lines, at)

    # truth

    def truths(self) -> dict[str, Truth]:
        """What is the case with every subject of the pack."""
        found = {f"labs/{job.id}": self._truth(job) for job in self.watched}
        found |= {
            self.log: Truth(Status.OK),
            LINES: Truth(None if self.blind or self.muted else Status.OK),
            DATABASE: Truth(Status.OK),
        }
        found[LOCK] = Truth(None if self.unknown_lock else Status.OK)
        return {**found, **self.says}

    def _truth(self, job: Job) -> Truth:
        if self.blind:
            return Truth(None)
        if self.muted:
            return Truth(None, uncertain=True)
        if job.is_stale(self.world.now):
            hidden = self.oracle.level(f"labs/{job.id}") is Status.OK and any(
                job.runs and job.runs[-1] < hole >= self.world.now - job.limit for hole in self.world.holes
            )
            hidden = hidden or self.doubt or (self.skewed and not job.is_stale(self.world.now - SECOND))
            return Truth(Status.CRIT, uncertain=hidden, not_before=self._not_before(job))
        if (
            job.max_run
            and job.id in self.world.running
            and self.world.now - self.world.running[job.id] > job.max_run
        ):
            return Truth(Status.WARN)
        return Truth(Status.OK, uncertain=self.doubt)

    def _not_before(self, job: Job) -> datetime | None:
        """A new job has its limit; a scheduler that counts intervals from its start owes the next run then."""
        if not job.runs:
            return self.new_since and self.new_since + job.limit
        begun = [start for start in self.world.starts if start > job.runs[-1]]
        if job.cron or not begun:
            return None
        return min(begun[0] + job.interval + MINUTE, job.runs[-1] + job.limit + job.interval)

    def say(self, subject: str, status: Status | None, patience: timedelta = timedelta(0)) -> None:
        """The truth about `subject` from now on."""
        self.says[subject] = Truth(status, patience)

    def unsay(self, *subjects: str) -> None:
        """Those are as the world has them again."""
        for subject in subjects:
            self.says.pop(subject, None)

    @contextmanager
    def blindness(self) -> Iterator[None]:
        """Nothing of the log can be read meanwhile."""
        self.blind = True
        self.say(self.log, Status.UNKNOWN)
        yield
        self.blind = False
        self.unsay(self.log)

    @property
    def subject(self) -> str:
        """The job it happens to."""
        return f"labs/{self.job.id}"

    @property
    def subjects(self) -> list[str]:
        """Whom the cell is about."""
        everyone = [f"labs/{job.id}" for job in self.watched]
        return {
            "": [],
            "job": [self.subject],
            "jobs": everyone,
            "new": ["labs/new"],
            "log": [self.log],
            "lines": [LINES],
            "lock": [LOCK],
            "database": [DATABASE],
            "pack": [self.pack],
        }[self.cell.about]

    def dies(self, job: Job | None = None) -> None:
        """The job stops firing, until it is told of and for a while longer."""
        job = job or self.job
        job.alive = False
        self.passes_until(lambda: job.is_stale(self.world.now))
        self.passes(self.rng.randint(1, 3))

    def comes_back(self, job: Job | None = None) -> None:
        """The job fires again, and is well for a while."""
        job = job or self.job
        job.alive = True
        self.passes_until(lambda: not job.is_stale(self.world.now))
        self.passes(2)


def act(
    cell: Cell, seed: int, plan: Callable[[Play], None], set_up: Callable[[Play], None] = lambda _: None
) -> int:
    """One play; returns how many passes it had, raises WrongError. `set_up` changes the stage before it."""
    folder = Path(tempfile.mkdtemp(prefix="argus-matrix-", dir=MEMORY if MEMORY.is_dir() else None))
    try:
        with FakeDocker() as docker, BotApi() as bot:
            play = Play(cell, seed, folder, docker, bot)
            try:
                set_up(play)
                plan(play)
                play.oracle.close(cell, play.subjects)
            finally:
                play.stage.leave()
            return play.made
    finally:
        shutil.rmtree(folder, ignore_errors=True)
