"""Check packs: one application's file of checks, as frozen values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import timedelta

from argus_sched import due_times
from argus_sched.agent.hosts import LOCAL, host_label

DEFAULT_WINDOW = timedelta(hours=26)
DEFAULT_TAKEOVER = timedelta(seconds=75)
SHORTEST_GRACE = timedelta(minutes=10)


@dataclass(frozen=True)
class PackDefaults:
    """What a pack takes where it says nothing; without `grace` it is one interval, at least ten minutes.

    `hosts` are the names it may say.
    """

    grace: timedelta | None = None
    timezone: str = "UTC"
    window: timedelta = DEFAULT_WINDOW
    takeover: timedelta = DEFAULT_TAKEOVER
    hosts: tuple[str, ...] = (LOCAL,)


@dataclass(frozen=True)
class LogSpec:
    """Where the application's log is: exactly one of the docker selectors, a file, or a systemd unit."""

    container: str | None = None
    compose_project: str | None = None
    compose_service: str | None = None
    label: str | None = None
    path: str | None = None
    format: str = "docker"  # docker | json-file, for `path`
    window: timedelta = DEFAULT_WINDOW
    host: str = LOCAL  # of the containers
    unit: str | None = None
    directory: str | None = None  # of the unit's journal; None for the machine's own

    @property
    def node(self) -> str:
        """The label of this source in the target tree."""
        if self.path is not None:
            return f"file:{self.path}"
        if self.unit is not None:
            return f"journal:{self.unit}"
        selector = (
            self.container
            or self.label
            or "/".join(part for part in (self.compose_project, self.compose_service) if part)
        )
        return f"docker:{selector}"

    @property
    def host_node(self) -> str | None:
        """The label of the host the log is on; None for the agent's own."""
        return host_label(self.host)


@dataclass(frozen=True)
class DatabaseSpec:
    """Where the lock's database is; the DSN itself comes from the environment or a file, never from YAML."""

    dsn_env: str | None = None
    dsn_file: str | None = None


@dataclass(frozen=True)
class JobSpec:
    """One job of a `scheduler_jobs` check; exactly one of `every` and `cron` is the trigger."""

    id: str
    name: str
    trigger: due_times.Trigger
    grace: timedelta  # resolved: given, or one interval and at least ten minutes
    interval: timedelta  # for cron: the longest gap between the next ten due times
    max_run: timedelta | None = None
    enabled: bool = True
    inferred: bool = False
    line: int = 0

    @property
    def limit(self) -> timedelta:
        """The age above which the job is stale."""
        return self.interval + self.grace


@dataclass(frozen=True)
class JobsCheck:
    """The check kind `scheduler_jobs`."""

    id: str
    jobs: tuple[JobSpec, ...]
    kind: str = "scheduler_jobs"


@dataclass(frozen=True)
class LockCheck:
    """The check kind `scheduler_lock`."""

    id: str
    key: int
    takeover: timedelta = DEFAULT_TAKEOVER
    tick: timedelta | None = None
    holder_name: str | None = None
    kind: str = "scheduler_lock"


@dataclass(frozen=True)
class Pack:
    """One application's file."""

    app: str
    path: str
    logs: LogSpec | None
    databases: tuple[DatabaseSpec, ...]
    checks: tuple[JobsCheck | LockCheck, ...]
    warnings: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class PackFile:
    """A file that is meant to hold a pack: `pack` is None, and `problem` says why, when it holds none."""

    path: str
    pack: Pack | None
    problem: str = ""

    @property
    def node(self) -> str:
        """Its place in the target tree, of no single application."""
        return f"pack:{self.path}"


def without_locks(packs: Iterable[Pack]) -> tuple[Pack, ...]:
    """The packs with their jobs only."""
    return tuple(
        replace(pack, checks=tuple(check for check in pack.checks if isinstance(check, JobsCheck)))
        for pack in packs
    )
