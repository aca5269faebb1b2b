"""The real agent between a daemon, a Bot API and a database, with its clock in the play's hand."""

from __future__ import annotations

import os
import re
import sqlite3
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from argus_sched.agent.check import PassReport
from argus_sched.agent.config.channels import TelegramSettings
from argus_sched.agent.config.notify_policy import NotifySettings
from argus_sched.agent.notifiers.telegram import TelegramNotifier, Timeouts
from argus_sched.agent.packs import LogSpec, Pack, PackFile
from argus_sched.agent.ports import LockSample, LockView, LogSource
from argus_sched.agent.runner import Agent, run_pass
from argus_sched.agent.sources import open_source
from argus_sched.agent.store.sqlite import Store
from argus_sched.agent.tasks import Edges
from argus_sched.agent.telling.messages import Message
from argus_sched.agent.telling.notify_ports import Accepted, Route
from argus_sched.agent.telling.teller import IncidentTeller
from tests.fakes.bot_api import TOKEN, BotApi, Delivered
from tests.matrix.world import World

CHAT, TOPIC = "-100123", 7
PATIENCE = 30.0  # of a read or a send; the machine may be busy
IMPATIENCE = 0.4  # of a read that is meant to hang
_LINE = re.compile(
    r"^(CRIT|UNKNOWN|WARN|OK|flapping|steady|still \w+) (labs/\S+|argus/\S+|pack:\S+)", re.MULTILINE
)


class Killed(BaseException):
    """The agent's process is gone."""


class PlayClock:
    """The agent's clock: the world's, as far ahead as it is set. Waiting moves only the waiting thread's
    elapsed time, so what two threads see does not depend on which is faster."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._began = world.now
        self._waited = threading.local()

    def now(self) -> datetime:
        return self._world.now + self._world.agent_ahead

    def elapsed(self) -> float:
        waited: float = getattr(self._waited, "seconds", 0.0)
        return (self._world.now - self._began).total_seconds() + waited

    def wait(self, wake: threading.Event, seconds: float) -> bool:
        self._waited.seconds = getattr(self._waited, "seconds", 0.0) + seconds
        return wake.is_set()


class LockOfWorld:
    """The lock view of the simulated database."""

    def __init__(self, world: World) -> None:
        self._world = world

    def sample(self, key: int) -> LockSample:
        return self._world.sample(key)

    def close(self) -> None:
        """Nothing is open."""


class Killer(TelegramNotifier):
    """The real channel, which takes the process down before or after a send when it is told to."""

    kill: Callable[[], str] = staticmethod(lambda: "")

    def send(self, message: Message, route: Route) -> Accepted:
        if self.kill() == "before":
            raise Killed
        accepted = super().send(message, route)
        if self.kill() == "after":
            raise Killed
        return accepted


class Doomed(IncidentTeller):
    """The real teller, under which the process dies before its transaction is committed."""

    kill: Callable[[], str] = staticmethod(lambda: "")

    def decide(self, connection: sqlite3.Connection, report: PassReport, now: datetime) -> None:
        super().decide(connection, report, now)
        if self.kill() == "deciding":
            raise Killed


class ReadOnlyStore(Store):
    """A store on a disk that takes nothing: SQLite refuses every write."""

    def _writable(self) -> sqlite3.Connection:
        connection = super()._writable()
        connection.execute("PRAGMA query_only = ON")
        return connection


@dataclass(frozen=True)
class Told:
    """One line of a message that reached the chat."""

    message: int
    label: str
    subject: str


class Stage:
    """Passes of the agent. With `anew` each is a process of its own, as `check` from cron; else one goes on."""

    def __init__(self, world: World, bot: BotApi, *, anew: bool) -> None:
        self.world = world
        self.bot = bot
        self.anew = anew
        self.clock = PlayClock(world)
        self.state = world.folder / "state.db"
        self.packs: tuple[Pack, ...] = ()
        self.files: tuple[PackFile, ...] = ()
        self.daemon_up = True
        self.hangs = False
        self.disk_full = False
        self.kill = ""
        self.open_locks: Callable[[Pack], Sequence[LockView]] = lambda _: [LockOfWorld(world)]
        self._agent: Agent | None = None
        self._read = 0

    def make_pass(self) -> PassReport | None:
        """One pass; None when the agent was killed in it."""
        if self._agent is None:
            self._agent = self._new_agent()
        try:
            return run_pass(replace(self._agent, packs=self.packs, files=self.files))
        except Killed:
            self.kill = ""
            self.leave()
            return None
        finally:
            if self.anew:
                self.leave()

    def leave(self) -> None:
        """End the agent."""
        if self._agent is not None:
            self._agent.close()
        self._agent = None

    def new_messages(self) -> list[Delivered]:
        """What reached the chat since the last call."""
        found = self.bot.delivered[self._read :]
        self._read += len(found)
        return found

    def _new_agent(self) -> Agent:
        store = (ReadOnlyStore if self.disk_full else Store)(self.state)
        settings = TelegramSettings(CHAT, token_env="TOKEN", thread_id=TOPIC, api_url=self.bot.url)
        telegram = Killer(settings, {"TOKEN": TOKEN}, Timeouts(PATIENCE, PATIENCE, PATIENCE))
        telegram.kill = lambda: self.kill  # type: ignore[method-assign]  # an attribute of this one
        stand_in = Store(self.world.folder / "stand-in.db")
        teller = Doomed(store, [telegram], NotifySettings(), timedelta(minutes=1), stand_in=stand_in)
        teller.kill = telegram.kill  # type: ignore[method-assign]
        edges = Edges(
            clock=self.clock,
            open_log=self._open_log,
            open_locks=self.open_locks,
            until=self.clock.now,
        )
        return Agent((), edges, store, timedelta(seconds=120), teller=teller)

    def _open_log(self, spec: LogSpec) -> LogSource:
        host = self.world.docker.host if self.daemon_up else f"unix://{self.world.folder}/away.sock"
        timeout = IMPATIENCE if self.hangs else PATIENCE
        return open_source(spec, clock=self.clock, timeout=timeout, docker_host=host)


def lines_of(messages: Sequence[Delivered]) -> list[Told]:
    """The lines of messages, in order; reminders are no news."""
    found = [
        Told(message.number, label, subject)
        for message in messages
        for label, subject in _LINE.findall(message.text)
    ]
    return [line for line in found if not line.label.startswith("still")]


def spoil(path: Path) -> None:
    """Overwrite a state file with what is none."""
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    path.write_bytes(os.urandom(4096))
