"""The agent put together from its settings: which edge serves which port."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

from argus_sched.agent.config.dsn import dsn_of, machine_of
from argus_sched.agent.config.settings import AgentSettings
from argus_sched.agent.hosts import Hosts, machine_label
from argus_sched.agent.packs import DatabaseSpec, LogSpec, Pack, PackFile
from argus_sched.agent.ports import LockView, LogSource
from argus_sched.agent.runner import Agent
from argus_sched.agent.store.run_lock import run_lock
from argus_sched.agent.store.sqlite import Store
from argus_sched.agent.tasks import Edges
from argus_sched.agent.telling.notify_ports import Teller
from argus_sched.agent.web_address import WebAddress
from argus_sched.clock import Clock, StandingClock, SystemClock
from argus_sched.errors import SettingsError

LOCK_WAIT_SECONDS = 10.0
# Two messages to one chat, each on its slowest way (a move, no topic, plain text), and the other channels.
TELLING_SECONDS = 40.0


def build_agent(
    settings: AgentSettings,
    packs: tuple[Pack, ...],
    environ: Mapping[str, str],
    *,
    files: tuple[PackFile, ...] = (),
    now: datetime | None = None,
    tells: bool = True,
) -> Agent:
    """The agent of one deployment; `files` are where the packs come from, the wrong ones with them.

    With `now` it judges as if it were that instant, writes no state and sends nothing; without `tells` it
    keeps state and sends nothing.
    """
    clock: Clock = StandingClock(now) if now else SystemClock()
    store = Store(settings.state)
    timeout = settings.read_timeout.total_seconds()
    edges = Edges(
        clock=clock,
        open_log=partial(_open_log, hosts=settings.hosts, clock=clock, timeout=timeout),
        open_locks=partial(_open_locks, environ=environ, timeout=timeout),
        # A log does not reach into a future that is only supposed.
        until=lambda: min(clock.now(), SystemClock().now()),
        host_of=partial(_host_of, hosts=settings.hosts, environ=environ),
    )
    if now:
        return Agent(packs, edges, store, settings.deadline, files, saves=False)
    return Agent(
        packs,
        edges,
        store,
        settings.deadline,
        files,
        teller=_teller(settings, store, environ) if tells else None,
        beat=partial(_beat, WebAddress(settings.heartbeat_url)) if tells and settings.heartbeat_url else None,
        exclusively=partial(run_lock, settings.state, LOCK_WAIT_SECONDS, clock),
    )


def _open_log(spec: LogSpec, hosts: Hosts, clock: Clock, timeout: float) -> LogSource:
    from argus_sched.agent.sources import open_source

    return open_source(spec, clock=clock, timeout=timeout, host=hosts[spec.host])


def _host_of(database: DatabaseSpec, hosts: Hosts, environ: Mapping[str, str]) -> str | None:
    """The node of a database's host; None also for a DSN that is missing, which its own check tells."""
    try:
        return machine_label(machine_of(dsn_of(database, environ)), hosts)
    except SettingsError:
        return None


def _open_locks(pack: Pack, environ: Mapping[str, str], timeout: float) -> Sequence[LockView]:
    from argus_sched.postgres.lock_view import PostgresLockView

    return [PostgresLockView(dsn_of(database, environ), timeout) for database in pack.databases]


def _teller(settings: AgentSettings, store: Store, environ: Mapping[str, str]) -> Teller:
    from argus_sched.agent.notifiers import open_notifiers
    from argus_sched.agent.store.stand_in import stand_in_path
    from argus_sched.agent.telling.teller import IncidentTeller

    return IncidentTeller(
        store,
        open_notifiers(settings, environ),
        settings.notify,
        settings.every,
        settings.maintenance,
        stand_in=Store(stand_in_path(settings.state, environ)),
    )


def _beat(url: WebAddress) -> None:
    from argus_sched.agent.heartbeat import beat

    beat(url)


def hard_limit(settings: AgentSettings) -> timedelta:
    """After how long a run that still has no verdict must be ended from outside its own code."""
    return settings.deadline + timedelta(seconds=LOCK_WAIT_SECONDS + TELLING_SECONDS)
