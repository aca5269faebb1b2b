"""The whole story in under a minute: two workers, one leader, two failovers, a forgotten job and its alert.

Everything runs on this machine and is gone at the end: a throw-away Postgres, two worker processes, the
agent as cron would run it, and a stand-in for Telegram where no bot is configured.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from argus_sched.harness import agent_files, archive, faults, invariants, labs_at_speed, run
from argus_sched.harness.agent_files import Chat
from argus_sched.harness.bot_api import BotApi
from argus_sched.harness.cluster import Cluster
from argus_sched.harness.expected import Plan
from argus_sched.harness.faults import Ground
from argus_sched.harness.figures import Sample, samples
from argus_sched.harness.profiles import profile
from argus_sched.harness.reigns import reigns
from argus_sched.harness.report import Record
from argus_sched.harness.sampler import Sampler
from argus_sched.harness.scenario import Step
from argus_sched.harness.settings import RunSettings, WorkerSettings
from argus_sched.harness.slots import Slot, launch
from argus_sched.postgres import schema
from argus_sched.postgres.embedded import EmbeddedPostgres
from argus_sched.postgres.witness import Witness

Say = Callable[[str], None]
TOKEN_ENV, CHAT_ENV, STAND_IN_TOKEN = "ARGUS_TELEGRAM_TOKEN", "ARGUS_TELEGRAM_CHAT", "12345:stand-in"
FORGOTTEN = "booking_reminders"
PATIENCE = 60.0
OK, CRIT = 0, 2


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

    @property
    def cluster(self) -> Cluster:
        """The two workers."""
        return self.ground.cluster

    def leader(self) -> str:
        """The leader as the story calls it."""
        return called(self.ground.leader().name)


def play(say: Say, report: Path) -> int:
    """Tell the story, and leave its report in `report`; 0 when everything came as it should."""
    with set_up(say) as stage:
        since = _meet(stage)
        _kill(stage)
        _terminate(stage)
        record = _judge(stage, since)
        page = archive.keep(record, report)
        told = _forget_a_job(stage) and _bring_it_back(stage)
    say(
        f"Until the deploy, {record.verdict.expected} runs were due: {record.verdict.lost} were lost, "
        f"{record.verdict.doubled} ran twice, and {record.verdict.interrupted} died with the killed worker. "
        "That is the judgement of code that shares nothing with the scheduler."
    )
    say(f"The two failovers as a picture: {page}\nAll else is gone: the processes, the database, the files.")
    return 0 if record.verdict.held and told else 1


def _meet(stage: Stage) -> float:
    stage.say("Two workers of one application start. Each has the same twelve jobs; one of them must lead.")
    since = run.begin(stage.ground, labs_at_speed.plans(), lambda _: None)
    stage.say(f"{stage.leader()} leads. Once a job runs, the log says so; here are its last lines:")
    show(_last_runs(stage, 3))
    stage.say(
        "The agent reads that log and looks at the lock in Postgres, as cron would have it do each minute:"
    )
    stage.cluster.rest(1.0)
    _check(stage, told=True)
    return since


def _kill(stage: Stage) -> None:
    old = stage.leader()
    stage.say(f"Now {old} is killed, with kill -9: it can tell nobody.")
    faults.kill(stage.ground, Step(0, "kill"))
    cost = _cost(stage)
    stage.say(
        f"{stage.leader()} leads {_ms(cost.promotion_ms)} after the kill. "
        "A new process takes the dead one's place and stands by."
    )
    stage.cluster.wait_until(stage.cluster.complete, PATIENCE, "the killed worker did not come back")
    stage.cluster.rest(2.0)


def _terminate(stage: Stage) -> None:
    old = stage.leader()
    stage.say(
        f"Next, Postgres ends the leader's session (pg_terminate_backend), while {old} itself lives on."
    )
    faults.terminate(stage.ground, Step(0, "terminate"))
    stage.cluster.rest(1.5)
    cost = _cost(stage)
    stage.say(
        f"{old} noticed and stopped firing after {_ms(cost.demotion_ms)}; "
        f"{stage.leader()} leads {_ms(cost.promotion_ms)} after the cut."
    )
    stage.cluster.rest(2.0)


def _forget_a_job(stage: Stage) -> bool:
    """Deploy a version without one job and wait for the agent; True when it said so."""
    name = next(plan.name for plan in labs_at_speed.plans() if plan.job == FORGOTTEN)
    stage.say(f'A new version is deployed, worker by worker, and it forgot one job: "{name}". Nothing fails.')
    _deploy(stage, tuple(plan for plan in labs_at_speed.plans() if plan.job != FORGOTTEN))
    stage.say("Only the agent can notice, by what is missing from the log. It looks again and again:")
    if not _check_until(stage, CRIT):
        stage.say("The agent did not notice, and should have: please report that.")
        return False
    _tell_message(stage, "It is critical now, and one message went out")
    _check(stage, told=True)
    return True


def _bring_it_back(stage: Stage) -> bool:
    """Deploy the job again and wait for the agent; True when it said that all is well."""
    stage.say("The next version has the job again.")
    _deploy(stage, labs_at_speed.plans())
    if not _check_until(stage, OK):
        stage.say("The agent did not see it come back, and should have: please report that.")
        return False
    _tell_message(stage, "All is well, and the recovery was told too")
    return True


def _deploy(stage: Stage, plans: tuple[Plan, ...]) -> None:
    replace(stage.cluster.settings, plans=plans).write(stage.folder)
    faults.deploy(stage.ground)


def _check_until(stage: Stage, wanted: int) -> bool:
    """Run the agent until it exits with `wanted` and its message has come; False when that takes too long."""
    deadline = time.monotonic() + PATIENCE
    while True:
        code = _check(stage, told=False)
        print(f"    argus-sched check: exit code {code}", flush=True)
        told = code == wanted and (bool(stage.messages) or not stage.stand_in)
        if told or time.monotonic() > deadline:
            print(flush=True)
            return told
        stage.cluster.rest(1.2)


def _tell_message(stage: Stage, what: str) -> None:
    if stage.stand_in:
        stage.say(f"{what}. This is what Telegram would show:")
        show(stage.messages.pop().splitlines())
    else:
        stage.say(f"{what}, to your chat.")


def _check(stage: Stage, *, told: bool) -> int:
    """Run the agent once, as a program; `told` shows what it prints."""
    command = [sys.executable, "-m", "argus_sched", "check", "--config", str(stage.config)]
    done = subprocess.run(command, env=stage.environment, capture_output=True, text=True, check=False)
    lines = ["$ argus-sched check", *done.stdout.rstrip().splitlines()] if told else []
    if lines or done.stderr.strip():
        show([*lines, *done.stderr.rstrip().splitlines()])
    return done.returncode


def _cost(stage: Stage) -> Sample:
    """What the last fault cost, once the next leader is known."""
    stage.ground.leader()
    history = stage.cluster.history()
    return samples(history, reigns(history), time.time())[-1]


def _judge(stage: Stage, since: float) -> Record:
    plans, span = labs_at_speed.plans(), (round(since * 1000), round(time.time() * 1000))
    run.drain(stage.ground, plans, span, lambda _: None)
    history = stage.cluster.history(run.claims(stage.ground, plans, span))
    verdict = invariants.judge(history, plans, span, stage.ground.profile.rules())
    settings = RunSettings(workers=2, jobs=len(plans), duration=0, faults=("kill", "terminate"), seed=0)
    return Record(settings, plans, span, history, verdict, ("This was the demo: argus-sched demo",))


@contextmanager
def set_up(say: Say) -> Iterator[Stage]:
    """The stage, built up and taken down: server, workers, the agent's files, a receiver of messages."""
    say("This takes under a minute. First, a Postgres of our own starts in a temporary folder.")
    messages: list[str] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="argus-demo-run-")))
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


def _last_runs(stage: Stage, count: int) -> list[str]:
    log = stage.cluster.log_path(next(iter(stage.cluster.slots)))
    lines = (json.loads(line)["log"].rstrip() for line in log.read_text().splitlines())
    return [line for line in lines if "Running job" in line][-count:]


def _ms(value: float | None) -> str:
    return "an unknown time" if value is None else f"{value:.1f} ms"
