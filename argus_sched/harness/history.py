"""What happened: the events of one run, as frozen values and as JSON lines.

Every instant is seconds since the Unix epoch on the harness machine's own clock, also where a worker was
given a wrong one. The due time of a fire is written in whole milliseconds, so that it can be compared.
A worker here is one process from birth to death: a respawned one is another worker in the same slot.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from sys import intern
from typing import Any, TypeVar, get_args


@dataclass(frozen=True, slots=True)
class Started:
    """The body of a fire began; the job body itself wrote this line."""

    at: float
    worker: str
    job: str
    due_ms: int
    epoch: int
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class Finished:
    """The body of a fire came to its end."""

    at: float
    worker: str
    job: str
    due_ms: int
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class Claimed:
    """A row of the scheduler's own ledger, read after the run.

    While it is open, `outcome` is empty and `ended` None.
    """

    at: float
    worker: str
    job: str
    due_ms: int
    outcome: str
    attempt: int = 1
    ended: float | None = None


@dataclass(frozen=True, slots=True)
class Belief:
    """What a worker thinks it is; a leader believes it until `trusted_until` at most (None: no lease)."""

    at: float
    worker: str
    role: str
    epoch: int
    trusted_until: float | None = None
    cause: str = ""


@dataclass(frozen=True, slots=True)
class Holders:
    """The database sessions that hold the key at `at`; None when the database could not be asked."""

    at: float
    pids: tuple[int, ...] | None


@dataclass(frozen=True)
class Service:
    """The leader-only service of a worker was started or stopped."""

    at: float
    worker: str
    running: bool


@dataclass(frozen=True)
class Born:
    """A worker process exists."""

    at: float
    worker: str
    slot: str
    pid: int
    instance: str = ""


@dataclass(frozen=True)
class Died:
    """A worker is gone: `kill` by a fault, `stop` when it was asked to, `itself` when nobody did it."""

    at: float
    worker: str
    how: str


@dataclass(frozen=True)
class Frozen:
    """A worker did not run from `at` to `until`."""

    at: float
    until: float
    worker: str


@dataclass(frozen=True)
class Skewed:
    """A worker's wall clock was `seconds` ahead of the truth (behind, if negative) from `at` on."""

    at: float
    worker: str
    seconds: float


@dataclass(frozen=True)
class Fault:
    """Something done to the cluster, from `at` to `until`.

    `worker` is the one it was aimed at and `leading` whether that one led. `promote_from` is the instant from
    which the next leader is awaited: the fault itself, or the database's return after a restart.
    """

    at: float
    until: float
    name: str
    worker: str
    leading: bool
    promote_from: float
    detail: str = ""


@dataclass(frozen=True)
class Looked:
    """The agent made one pass, from `at` to `until`; `problem` is empty when it came to a verdict."""

    at: float
    until: float
    problem: str = ""


@dataclass(frozen=True)
class Graded:
    """The agent's status of a target changed."""

    at: float
    target: str
    status: str
    age_seconds: float | None = None


@dataclass(frozen=True)
class Told:
    """A message of the agent reached its chat."""

    at: float
    text: str


Event = (
    Started | Finished | Claimed | Belief | Holders | Service | Born | Died | Frozen | Skewed | Fault
    | Looked | Graded | Told
)  # fmt: skip
KINDS: dict[str, type[Event]] = {kind.__name__.lower(): kind for kind in get_args(Event)}
E = TypeVar("E", bound=Event)


@dataclass(frozen=True)
class History:
    """All events of a run in order of time."""

    events: tuple[Event, ...]

    @classmethod
    def of(cls, events: Iterable[Event]) -> History:
        """A history from events in any order."""
        return cls(tuple(sorted(events, key=lambda event: event.at)))

    def of_kind(self, kind: type[E]) -> tuple[E, ...]:
        """The events of one kind, in order of time."""
        return tuple(self._by_kind.get(kind, ()))  # type: ignore[arg-type]  # each list holds its key's kind

    @cached_property
    def _by_kind(self) -> dict[type[Event], list[Event]]:
        groups: dict[type[Event], list[Event]] = defaultdict(list)
        for event in self.events:
            groups[type(event)].append(event)
        return groups

    def around(self, at: float, seconds: float = 1.0, limit: int = 12) -> tuple[Event, ...]:
        """At most `limit` events nearest to `at` within `seconds`, in order, without samples of the lock."""
        near = [
            event for event in self.events if abs(event.at - at) <= seconds and not isinstance(event, Holders)
        ]
        near.sort(key=lambda event: abs(event.at - at))
        return tuple(sorted(near[:limit], key=lambda event: event.at))


def to_line(event: Event) -> str:
    """One event as one line of JSON, with its line feed."""
    return json.dumps({"event": type(event).__name__.lower(), **asdict(event)}, separators=(",", ":")) + "\n"


def from_line(line: str | bytes) -> Event:
    """The event of one line; raises ValueError when it is none."""
    fields: dict[str, Any] = json.loads(line)
    kind = KINDS.get(fields.pop("event", ""))
    if kind is None:
        raise ValueError(f"no event of a history: {line!r}")
    if kind is Holders and fields["pids"] is not None:
        fields["pids"] = tuple(fields["pids"])
    # A long run has millions of lines and few names.
    for name in ("worker", "job"):
        if name in fields:
            fields[name] = intern(fields[name])
    return kind(**fields)


def read_lines(data: bytes) -> Iterator[Event]:
    """Every whole line as an event; the unfinished last line of a killed writer is left out."""
    for line in data.splitlines(keepends=True):
        if line.endswith(b"\n") and line.strip():
            yield from_line(line)
