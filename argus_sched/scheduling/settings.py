"""Everything a scheduler is told, checked in one place."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any, Literal, Self, TypedDict

from argus_sched import advisory_keys
from argus_sched.errors import SettingsError
from argus_sched.scheduling.leadership import Timing

PRODUCTION = ("production", "prod")
# Guards that can be switched off, to show what each is for.
GUARDS = ("claims", "tick", "watch", "lease", "catch-up", "deferral", "jitter-hash")


class Coordination(StrEnum):
    """Who schedules: one elected leader, or every worker (claims alone keep their fires apart)."""

    LEADER = "leader"
    EVERY_WORKER = "every_worker"


class Claims(StrEnum):
    """Where a fire is claimed before it runs."""

    POSTGRES = "postgres"
    REDIS = "redis"
    NONE = "none"


class SchedulerOptions(TypedDict, total=False):
    """What a scheduler may be told besides its database and its namespace, for editors and type checkers."""

    coordination: Literal["leader", "every_worker"]
    claims: Literal["postgres", "redis", "none"]
    redis_url: str | None
    timing: Timing
    key: int
    threads: int
    max_failures: int
    retention: timedelta
    stop_timeout: float
    migrate: bool
    candidate: bool
    fire_lock_ttl: int
    run_now_ttl: int
    without: Collection[str]


@dataclass(frozen=True)
class Settings:
    """One scheduler's settings, as they were given; `check` says whether they can work.

    `environment` other than `production` lets an unreachable store mean "run unguarded"; production fails
    closed, and so does an environment that is empty or None. `fire_lock_ttl` and `run_now_ttl` (seconds) are
    for claims in Redis, whose keys expire.
    """

    namespace: str
    dsn: str | None = None
    environment: str | None = "production"
    coordination: str = Coordination.LEADER
    claims: str = Claims.POSTGRES
    redis_url: str | None = None
    timing: Timing = field(default_factory=Timing.default)
    key: int = advisory_keys.LEADER.number
    threads: int = 20
    max_failures: int = 3
    retention: timedelta = timedelta(days=30)
    stop_timeout: float = 10.0
    migrate: bool = False
    candidate: bool = True
    fire_lock_ttl: int = 86_400
    run_now_ttl: int = 3_600
    without: frozenset[str] = frozenset()
    unknown: tuple[str, ...] = ()

    @classmethod
    def of(cls, **options: Any) -> Self:
        """The settings of these options; names that are none of them are kept for `check` to refuse."""
        known = {each.name for each in fields(cls)}
        unknown = tuple(sorted(options.keys() - known))
        return cls(**{name: value for name, value in options.items() if name in known}, unknown=unknown)

    def check(self) -> None:
        """Return when these settings can work; else SettingsError says in one sentence what cannot."""
        for name in self.unknown:
            raise SettingsError(f"a scheduler has no option {name!r}: see docs/scheduler.md for those it has")
        text = self.namespace
        if not isinstance(text, str) or not text or not text.isprintable() or len(text) > 100:
            raise SettingsError(f"namespace {text!r}: use 1 to 100 printable characters")
        _one_of("coordination", self.coordination, Coordination)
        _one_of("claims", self.claims, Claims)
        self._check_stores()
        self._check_numbers()
        _instance_of("timing", self.timing, Timing, "Timing.default(), Timing.fast() or Timing(...)")
        self.timing.check()
        for guard in self.without:
            if guard not in GUARDS:
                raise SettingsError(f"there is no guard {guard!r}: use any of {', '.join(GUARDS)}")

    def _check_stores(self) -> None:
        if self.needs_postgres and not (self.dsn and isinstance(self.dsn, str)):
            raise SettingsError(
                f"coordination={str(self.coordination)!r} with claims={str(self.claims)!r} needs a DSN: "
                "pass one, or "
                "use coordination='every_worker' with claims='redis'"
            )
        if self.claims == Claims.REDIS and not self.redis_url:
            raise SettingsError("claims='redis' needs redis_url, for example redis://127.0.0.1:6379/0")

    def _check_numbers(self) -> None:
        for name in ("threads", "max_failures", "fire_lock_ttl", "run_now_ttl"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise SettingsError(f"{name} is {value!r}: use a whole number from 1")
        _instance_of("retention", self.retention, timedelta, "a timedelta")
        _instance_of("stop_timeout", self.stop_timeout, int | float, "seconds")
        if self.retention < timedelta(0):
            raise SettingsError(f"retention is {self.retention}: use zero or more")
        if not 0 <= self.stop_timeout < math.inf:
            raise SettingsError(f"stop_timeout is {self.stop_timeout}: use zero or more seconds")
        if type(self.key) is not int or not advisory_keys.MIN_KEY <= self.key <= advisory_keys.MAX_KEY:
            raise SettingsError(f"key is {self.key!r}: use a whole number of 64 bits, with a sign")

    @property
    def needs_postgres(self) -> bool:
        """True when anything of this scheduler lives in Postgres."""
        return self.coordination == Coordination.LEADER or self.claims == Claims.POSTGRES

    @property
    def leads(self) -> bool:
        """True where a leader is elected."""
        return self.coordination == Coordination.LEADER

    @property
    def production(self) -> bool:
        """True where an unreachable store must mean that nothing runs."""
        return not self.environment or str(self.environment).strip().lower() in PRODUCTION

    @property
    def guarded_by_claims(self) -> bool:
        """True while claims keep two workers apart."""
        return self.claims != Claims.NONE and "claims" not in self.without

    @property
    def effective_timing(self) -> Timing:
        """The timing, without its lease when that guard is off."""
        return replace(self.timing, lease=None) if "lease" in self.without else self.timing


def _one_of(name: str, value: str, words: type[StrEnum]) -> None:
    if value not in list(words):
        raise SettingsError(f"{name} is {value!r}: use one of {', '.join(words)}")


def _instance_of(name: str, value: object, kind: Any, example: str) -> None:
    if not isinstance(value, kind):
        raise SettingsError(f"{name} is {value!r}: use {example}")
