"""What every worker of a run is told, in one file of the run's folder."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from argus_sched.errors import SettingsError
from argus_sched.harness.expected import Plan

GUARDS = {
    "claims": "a fire runs without a claim",
    "tick": "the leader does not ask whether it still leads",
    "watch": "nobody looks at the lock's socket between ticks",
    "lease": "the server keeps a silent leader for ever, and the leader believes for ever",
    "catch-up": "due times that passed while nobody led are skipped",
    "deferral": "leader-only services start at once on promotion",
    "jitter-hash": "jitter is drawn at random instead of computed",
}
COORDINATIONS = ("leader", "claims", "redis")


@dataclass(frozen=True)
class WorkerSettings:
    """One run's settings. `without` names the guards that are switched off, `key` the leader's lock."""

    namespace: str
    key: int
    profile: str
    plans: tuple[Plan, ...]
    without: tuple[str, ...] = ()
    coordination: str = "leader"
    redis: str = ""

    def __post_init__(self) -> None:
        check_guards(self.without)
        if self.coordination not in COORDINATIONS:
            raise SettingsError(
                f"there is no coordination {self.coordination!r}: use {', '.join(COORDINATIONS)}"
            )

    def write(self, folder: Path) -> None:
        """Keep the settings where the workers of this run look for them."""
        (folder / "settings.json").write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, folder: Path) -> WorkerSettings:
        """The settings of the run in `folder`."""
        fields: dict[str, Any] = json.loads((folder / "settings.json").read_text())
        fields["plans"] = tuple(Plan(**plan) for plan in fields["plans"])
        fields["without"] = tuple(fields["without"])
        return cls(**fields)


@dataclass(frozen=True)
class RunSettings:
    """What a person asked for; enough to repeat the run. `dsn` None: a throw-away Postgres of our own."""

    workers: int = 3
    jobs: int = 20
    duration: float = 60.0
    faults: tuple[str, ...] = ()
    seed: int = 1
    profile: str = "default"
    coordination: str = "leader"
    dsn: str | None = None
    lines: str = "proxy"
    without: tuple[str, ...] = ()
    uvicorn: bool = False
    docker: bool = False
    agent: bool = False

    @property
    def elects(self) -> bool:
        """Whether one worker leads; else every worker schedules and claims alone keep them apart."""
        return self.coordination == "leader"

    @property
    def command(self) -> str:
        """The command that repeats this run; a DSN is left out, since it may hold a password."""
        words = ["argus-sched harness run", f"--workers {self.workers}", f"--jobs {self.jobs}"]
        words += [f"--duration {max(self.duration, 1):g}s", f"--faults {','.join(self.faults) or 'none'}"]
        words += [f"--seed {self.seed}", f"--profile {self.profile}", f"--coordination {self.coordination}"]
        words += [f"--without {','.join(self.without)}"] if self.without else []
        words += ["--dsn ..."] if self.dsn else []
        words += [f"--lines {self.lines}"] if self.lines != "proxy" else []
        words += [f"--{name}" for name in ("uvicorn", "docker", "agent") if getattr(self, name)]
        return " ".join(words)

    def as_json(self) -> dict[str, Any]:
        """The settings as JSON-ready values, without the DSN."""
        return {**asdict(self), "dsn": None, "embedded": self.dsn is None}

    @classmethod
    def from_json(cls, fields: dict[str, Any], dsn: str | None) -> RunSettings:
        """The settings of an earlier run, for another database where it had one of its own.

        Raises KeyError, TypeError or ValueError for what are no settings of a run.
        """
        known = {name: value for name, value in fields.items() if name not in ("embedded", "dsn")}
        known |= {name: tuple(map(str, known[name])) for name in ("faults", "without")}
        known["duration"] = float(known["duration"])
        for name, value in known.items():
            if not isinstance(value, type(getattr(cls, name, None))):
                raise TypeError(f"{name} is {value!r}")
        return cls(**known, dsn=dsn)


def check_guards(names: Iterable[str]) -> None:
    """Refuse an unknown guard by name."""
    for name in names:
        if name not in GUARDS:
            raise SettingsError(f"there is no guard {name!r} to switch off: use any of {', '.join(GUARDS)}")


def plans(count: int) -> tuple[Plan, ...]:
    """`count` jobs, due every one to three seconds; of ten, one runs at least once and one has jitter."""
    return tuple(_plan(number) for number in range(count))


def _plan(number: int) -> Plan:
    every = (1000, 1000, 1000, 2000, 3000)[number % 5]
    return Plan(
        job=f"job_{number:02d}",
        name=f"Harness job {number:02d}",
        every_ms=every,
        phase_ms=(number * 137) % every,
        at_least_once=number % 10 == 9,
        jitter_ms=200 if number % 10 == 7 else 0,
        body_ms=5 if number % 4 else 30,
    )
