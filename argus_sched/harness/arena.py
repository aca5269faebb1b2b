"""Everything one run needs, built up and taken down again in one place, whatever happens in between."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from argus_sched.advisory_keys import LEADER, derived_key
from argus_sched.errors import SettingsError
from argus_sched.harness import namespaces, scenario, side_servers
from argus_sched.harness.agent_files import Watched
from argus_sched.harness.beside import DSN_ENV, AgentBeside
from argus_sched.harness.borrowed import borrowed
from argus_sched.harness.cluster import Cluster
from argus_sched.harness.faults import Ground
from argus_sched.harness.lines import LINES, Lines, ProxyLines
from argus_sched.harness.profiles import profile
from argus_sched.harness.proxy import Proxy
from argus_sched.harness.sampler import Sampler
from argus_sched.harness.settings import RunSettings, WorkerSettings, check_guards, plans
from argus_sched.harness.slots import Launcher, Slot, launch
from argus_sched.postgres.embedded import EmbeddedPostgres
from argus_sched.postgres.witness import Witness

DATABASE, APP = "harness", "harness"
SIDE_BY_SIDE = 2


@contextlib.contextmanager
def set_up(settings: RunSettings, folder: Path) -> Iterator[Ground]:
    """The ground of a run, its cluster not started yet; at the end nothing of it is left but `folder`."""
    check(settings)
    with ExitStack() as stack:
        run_id = uuid.uuid4().hex[:8]
        proxy = stack.enter_context(Proxy()) if _needs_proxy(settings) else None
        lines = _lines(settings, run_id, proxy, stack)
        server = None if settings.dsn else stack.enter_context(EmbeddedPostgres(door=lines.door))
        dsn = settings.dsn or (server.create_database(DATABASE) if server else "")
        namespace = f"harness-{run_id}"
        stack.enter_context(borrowed(dsn, namespace))
        key = LEADER.number if server else derived_key("harness", run_id)
        witness = stack.enter_context(contextlib.closing(Witness(dsn, key)))
        eyes = stack.enter_context(contextlib.closing(Witness(dsn, key)))
        told = WorkerSettings(
            namespace,
            key,
            settings.profile,
            plans(settings.jobs),
            settings.without,
            settings.coordination,
            _redis(settings, stack),
        )
        ways = {name: lines.open(name, dsn) for name, _ in sizes(settings)}
        slots = [Slot(name, ways[name].dsn, size, ways[name].within) for name, size in sizes(settings)]
        if settings.docker:
            stack.callback(_remove_containers, folder)
        one_log = APP if settings.agent else None
        cluster = stack.enter_context(Cluster(folder, told, slots, launcher(settings), one_log))
        ground = Ground(cluster, witness, profile(settings.profile), server, lines, proxy)
        stack.callback(ground.put_right)
        stack.enter_context(Sampler(eyes.holders, cluster.record))
        if settings.agent:
            stack.enter_context(_agent(ground, folder, dsn))
        yield ground


def check(settings: RunSettings) -> None:
    """Refuse what cannot be run here, with one sentence."""
    scenario.check(settings.faults)
    profile(settings.profile)
    check_guards(settings.without)
    if settings.dsn is not None and not settings.dsn.strip():
        raise SettingsError("--dsn is empty: name a database, or leave --dsn out for a throw-away one")
    if settings.workers < 1 or settings.jobs < 1 or settings.duration < 0:
        raise SettingsError("a run needs at least one worker and one job, and a duration of zero or more")
    foreign = [name for name in settings.faults if name in scenario.NEED_SERVER] if settings.dsn else []
    if foreign:
        raise SettingsError(
            f"{', '.join(foreign)} would stop a database that is not the harness's: leave out --dsn, or them"
        )
    locked = [name for name in settings.faults if name in scenario.NEED_LOCK]
    if locked and not settings.elects:
        raise SettingsError(
            f"with --coordination {settings.coordination} nobody holds a lock: leave out {', '.join(locked)}"
        )
    if "pooler" in settings.faults and not side_servers.has_pooler():
        raise SettingsError("the fault `pooler` needs pgbouncer: install it, or leave the fault out")
    _check_lines(settings)


def possible_faults(dsn: str | None, *, elects: bool = True) -> tuple[str, ...]:
    """Every fault that can be done here: to a database of ours (None) or to one that was named."""
    names = [name for name in scenario.FAULTS if dsn is None or name not in scenario.NEED_SERVER]
    names = [name for name in names if elects or name not in scenario.NEED_LOCK]
    return tuple(name for name in names if name != "pooler" or side_servers.has_pooler())


def sizes(settings: RunSettings) -> list[tuple[str, int]]:
    """The slots of a run and how many workers each holds; with uvicorn two share a parent."""
    size = SIDE_BY_SIDE if settings.uvicorn else 1
    whole, rest = divmod(settings.workers, size)
    counts = [size] * whole + [rest] * bool(rest)
    return [(f"w{number}", count) for number, count in enumerate(counts, 1)]


def launcher(settings: RunSettings) -> Launcher:
    """What fills a slot."""
    if settings.docker:
        from argus_sched.harness.containers import launch_container

        return launch_container
    return launch


def _remove_containers(folder: Path) -> None:
    from argus_sched.harness.containers import remove_containers

    remove_containers(folder)


def _agent(ground: Ground, folder: Path, dsn: str) -> AgentBeside:
    told, promise = ground.cluster.settings, ground.profile
    log = ground.cluster.log_path(APP)
    log.touch()
    watched = Watched(APP, log, told.key, told.plans, promise.grace, promise.takeover, DSN_ENV)
    return AgentBeside(folder, watched, dsn, ground.cluster.record)


def _check_lines(settings: RunSettings) -> None:
    if settings.lines not in LINES:
        raise SettingsError(f"there are no lines {settings.lines!r}: use any of {', '.join(LINES)}")
    if settings.lines == "namespaces":
        # From a namespace nothing is reached but a server of ours that listens at its end of the link.
        unreachable = {"--dsn": settings.dsn, "--docker": settings.docker}
        unreachable["--coordination redis"] = settings.coordination == "redis"
        for option in (name for name, given in unreachable.items() if given):
            raise SettingsError(f"--lines namespaces cannot be joined with {option}: leave one of them out")
        if obstacle := namespaces.obstacle():
            raise SettingsError(f"--lines namespaces cannot be had here: {obstacle}, or use --lines proxy")


def _needs_proxy(settings: RunSettings) -> bool:
    relayed = set(scenario.NEED_PROXY) | ({"partition"} if settings.lines == "proxy" else set())
    return not relayed.isdisjoint(settings.faults)


def _lines(settings: RunSettings, run_id: str, proxy: Proxy | None, stack: ExitStack) -> Lines:
    if settings.lines == "proxy":
        return ProxyLines(proxy)
    slots = [name for name, _ in sizes(settings)]
    return stack.enter_context(namespaces.NamespaceLines(run_id, slots, proxy))


def _redis(settings: RunSettings, stack: ExitStack) -> str:
    return stack.enter_context(side_servers.redis()) if settings.coordination == "redis" else ""
