"""Check packs: one application's file of checks, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from argus_sched import due_times

DEFAULT_WINDOW = timedelta(hours=26)
DEFAULT_TAKEOVER = timedelta(seconds=75)
SHORTEST_GRACE = timedelta(minutes=10)


@dataclass(frozen=True)
class PackDefaults:
    """What a pack takes where it says nothing; without `grace` it is one interval, at least ten minutes."""

    grace: timedelta | None = None
    timezone: str = "UTC"
    window: timedelta = DEFAULT_WINDOW
    takeover: timedelta = DEFAULT_TAKEOVER


@dataclass(frozen=True)
class LogSpec:
    """Where the application's log is: exactly one of the docker selectors, or a file."""

    container: str | None = None
    compose_project: str | None = None
    compose_service: str | None = None
    label: str | None = None
    path: str | None = None
    format: str = "docker"  # docker | json-file, for `path`
    window: timedelta = DEFAULT_WINDOW

    @property
    def node(self) -> str:
        """The label of this source in the target tree."""
        if self.path is not None:
            return f"file:{self.path}"
        selector = (
            self.container
            or self.label
            or "/".join(part for part in (self.compose_project, self.compose_service) if part)
        )
        return f"docker:{selector}"


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
