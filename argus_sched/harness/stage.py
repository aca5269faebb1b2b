"""What the demo plays on: a throw-away Postgres, two workers, the agent's files, a receiver of messages."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from argus_sched.agent.store.notice_rows import tally
from argus_sched.agent.store.sqlite import Store
from argus_sched.harness import agent_files, labs_at_speed
from argus_sched.harness.aftermath import one_folder
from argus_sched.harness.agent_files import Chat
from argus_sched.harness.bot_api import BotApi
from argus_sched.harness.cluster import Cluster
from argus_sched.harness.faults import Ground
from argus_sched.harness.profiles import profile
from argus_sched.harness.sampler import Sampler
from argus_sched.harness.settings import WorkerSettings
from argus_sched.harness.slots import Slot, launch
from argus_sched.postgres import schema
from argus_sched.postgres.embedded import EmbeddedPostgres
from argus_sched.postgres.witness import Witness

Say = Callable[[str], None]
TOKEN_ENV, CHAT_ENV, STAND_IN_TOKEN = "ARGUS_TELEGRAM_TOKEN", "ARGUS_TELEGRAM_CHAT", "12345:stand-in"


@dataclass
class Stage:
    """What the story plays on."""

    ground: Ground
    folder: Path
    say: Say
    config: Path
    environment: Mapping[str, str]
    messages: list[str]
    stand_in: bool
    owed: int = 0
    delivered: int = 0

    @property
    def cluster(self) -> Cluster:
        """The two workers."""
        return self.ground.cluster

    @property
    def metrics(self) -> Path:
        """The textfile that each look of the agent writes."""
        return self.folder / "argus.prom"

    def leader(self) -> str:
        """The leader as the story calls it."""
        return called(self.ground.leader().name)

    def look(self) -> subprocess.CompletedProcess[str]:
        """Run the agent once, as a program, and note what it had to tell and how much of that arrived."""
        command = [sys.executable, "-m", "argus_sched", "check", "--config", str(self.config)]
        command += ["--textfile", str(self.metrics)]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        # Its words are of this look only, and an attempt may not be due in it; its state knows all.
        with closing(Store(self.folder / "state.db")) as store, store.transaction() as connection:
            self.owed, self.delivered = tally(connection)
        return done


@contextmanager
def set_up(say: Say) -> Iterator[Stage]:
    """The stage, built up and taken down: server, workers, the agent's files, a receiver of messages."""
    say("This takes under a minute. First, a Postgres of our own starts in a temporary folder.")
    messages: list[str] = []
    with ExitStack() as stack:
        folder = stack.enter_context(one_folder("argus-demo-run-"))
        server = stack.enter_context(EmbeddedPostgres())
        api = stack.enter_context(BotApi(messages.append))
        dsn = server.create_database(labs_at_speed.APP)
        schema.migrate(dsn)
        promise, plans = profile("default"), labs_at_speed.plans()
        told = WorkerSettings("labs", labs_at_speed.KEY, promise.name, plans)
        slots = [Slot(f"worker-{number}", dsn) for number in (1, 2)]
        witness, eyes = (stack.enter_context(closing(Witness(dsn, told.key))) for _ in range(2))
        cluster = stack.enter_context(Cluster(folder, told, slots, launch, log="labs-backend"))
        stack.enter_context(Sampler(eyes.holders, cluster.record))
        environment, config = _configure(folder, cluster, dsn, api)
        ground, stand_in = Ground(cluster, witness, promise, server), environment[TOKEN_ENV] == STAND_IN_TOKEN
        yield Stage(ground, folder, say, config, environment, messages, stand_in)


def _configure(folder: Path, cluster: Cluster, dsn: str, api: BotApi) -> tuple[dict[str, str], Path]:
    """The agent's environment and settings; messages go to a real chat where token and chat are set."""
    environment = {**os.environ, labs_at_speed.DSN_ENV: dsn, "NO_COLOR": "1"}
    chat, url = environment.get(CHAT_ENV, ""), None
    if not (environment.get(TOKEN_ENV) and chat):
        environment[TOKEN_ENV], chat, url = STAND_IN_TOKEN, "1", api.url
    log = cluster.log_path(next(iter(cluster.slots)))
    return environment, agent_files.write(folder, labs_at_speed.watched(log), Chat(TOKEN_ENV, chat, url))


def called(worker: str) -> str:
    """A worker as the story calls it."""
    slot, _, pid = worker.split(".")
    return f"{slot} (process {pid})"


def show(lines: Iterable[str]) -> None:
    """Print what a program said, apart from the story."""
    for line in lines:
        print(f"    {line}", flush=True)
    print(flush=True)
