"""Who may schedule, until when, and what a worker does next: the rules of leadership, as values.

A leader holds one session lock of the database. The server ends a session that stays silent for the
lease; the leader stops believing a little earlier, at 0.8 of it. Everything here takes the time as a
number of seconds on a clock that counts suspend, so that a frozen process wakes up without trust.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Self

from argus_sched.errors import SettingsError

# A wait as long as `deadlock_timeout` (1 s by default) makes the server look for deadlocks, and often log.
LONGEST_WAIT = 0.9
# Where a bounded wait is impossible the heir asks this often instead.
HEIR_POLL = 0.25

_FIRST_RETRY, _RETRY_CAP, _LONG_OUTAGE, _LONG_CAP = 0.05, 0.4, 60.0, 2.0
_FIRST_REFUSAL, _REFUSAL_CAP = 1.0, 10.0


class Role(StrEnum):
    """What a worker is at this moment."""

    STANDBY = "standby"
    HEIR = "heir"
    LEADER = "leader"
    STOPPED = "stopped"


class Cause(StrEnum):
    """Why a session, and the term it carried, ended."""

    CONNECTION_LOST = "connection_lost"
    TERMINATED = "terminated"
    SERVER_STOPPED = "server_stopped"
    LEASE_EXPIRED = "lease_expired"
    TICK_TIMEOUT = "tick_timeout"
    LOCK_LOST = "lock_lost"
    FOREIGN_SESSION = "foreign_session"
    REPLICA = "replica"
    FORKED = "forked"
    REFUSED = "refused"
    PROMOTION_FAILED = "promotion_failed"
    RESIGNED = "resigned"
    STOPPED = "stopped"
    ERROR = "error"

    @property
    def wanted(self) -> bool:
        """True when somebody asked for it, so it is no fault."""
        return self in (Cause.RESIGNED, Cause.STOPPED)


@dataclass(frozen=True)
class Timing:
    """The seconds leadership runs on; `check` says whether a set of them is safe.

    lease           how long the server keeps a silent session (`idle_session_timeout`); None: for ever
    tick            how often the leader asks whether it still leads
    tick_timeout    how long it waits for that answer before it stops
    heir_wait       one bounded wait of the heir; None: no heir, every standby probes the leader's lock
    probe           how often a standby asks
    deferral        how long a new leader holds back what no claim protects
    trust_ratio     the share of the lease a leader believes in; the rest keeps two leaders apart
    """

    lease: float | None = 3.0
    tick: float = 0.5
    tick_timeout: float = 0.75
    heir_wait: float | None = LONGEST_WAIT
    probe: float = 1.0
    deferral: float = 0.5
    trust_ratio: float = 0.8

    @classmethod
    def default(cls) -> Self:
        """A frozen leader is replaced within 3 s, a dead one within milliseconds."""
        return cls()

    @classmethod
    def fast(cls) -> Self:
        """A frozen leader is replaced within 1 s, for twice the queries."""
        return cls(lease=1.0, tick=0.25, tick_timeout=0.4, probe=0.5, deferral=0.25)

    @classmethod
    def recipe(cls) -> Self:
        """The specification's figures: a tick of 15 s, a probe of 60 s, a deferral of 15 s, and no lease."""
        return cls(lease=None, tick=15.0, tick_timeout=5.0, heir_wait=None, probe=60.0, deferral=15.0)

    def on_server(self, supports_lease: bool) -> Timing:
        """These figures, or the recipe's where the server (before PostgreSQL 14) has no lease to give."""
        return self if supports_lease or self.lease is None else Timing.recipe()

    def check(self) -> None:
        """Return when these figures are safe; else SettingsError names the inequality that they break."""
        for field in fields(self):
            value = getattr(self, field.name)
            absent = value is None and field.name in ("lease", "heir_wait")
            holds = absent or (isinstance(value, int | float) and 0 < value < math.inf)
            _demand(holds, f"{field.name} > 0", f"{value!r}")
        _demand(self.trust_ratio <= 0.9, "trust_ratio <= 0.9", f"{self.trust_ratio:g}")
        _demand(self.deferral >= self.tick, "deferral >= tick", f"{self.deferral:g} s, {self.tick:g} s")
        wait = self.heir_wait or 0.0
        _demand(wait <= LONGEST_WAIT, f"heir_wait <= {LONGEST_WAIT:g} s", f"{wait:g} s")
        if self.lease is not None:
            self._demand_room_in(self.lease)

    def _demand_room_in(self, lease: float) -> None:
        believed = f"{self.trust_ratio:g} x lease"
        room = f"{self.trust_ratio:g} x {lease:g} s"
        tick = self.tick + self.tick_timeout
        _demand(tick < self.trust, f"tick + tick_timeout < {believed}", f"{tick:g} s, {room}")
        _demand(self.probe <= self.trust, f"probe <= {believed}", f"{self.probe:g} s, {room}")

    @property
    def horizon(self) -> float:
        """Seconds of silence after which a side is given up: the lease, or two ticks and their waits."""
        return self.lease if self.lease is not None else 2 * (self.tick + self.tick_timeout)

    @property
    def trust(self) -> float:
        """Seconds a leader believes in one good tick, counted from when that tick was sent."""
        return self.trust_ratio * self.horizon


def _demand(holds: bool, inequality: str, found: str) -> None:
    if not holds:
        raise SettingsError(f"unsafe timing: {inequality} does not hold ({found})")


@dataclass(frozen=True)
class Term:
    """One reign: its number, which only ever grows, when it was won (elapsed seconds), and its backend."""

    epoch: int
    won_at: float
    backend_pid: int


@dataclass(frozen=True)
class Server:
    """Which server a session reached: the cluster's identifier and the timeline it writes."""

    system_identifier: str
    timeline: int


def retreat(seen: Server | None, found: Server | None) -> str | None:
    """Why `found` must not be led on after `seen`: the same cluster before its last promotion. Else None."""
    if seen is None or found is None or seen.system_identifier != found.system_identifier:
        return None
    if found.timeline >= seen.timeline:
        return None
    return (
        f"this server writes timeline {found.timeline}, but this worker has seen timeline {seen.timeline} of "
        "the same cluster: it is an old primary that was replaced; point the DSN at the new one"
    )


def retry_pause(outage: float, chance: float) -> float:
    """Seconds before the next attempt to connect, after `outage` seconds without; `chance` in 0..1 jitters.

    Begins at 25-50 ms, so that a restarted server is led at once, and stays short for a minute.
    """
    cap = _RETRY_CAP if outage < _LONG_OUTAGE else _LONG_CAP
    return min(max(_FIRST_RETRY, outage / 10), cap) * (1 + chance) / 2


def refusal_pause(outage: float, chance: float) -> float:
    """Seconds before looking again whether a refusal still stands; a person must act, so it grows to 10 s."""
    return min(max(_FIRST_REFUSAL, outage / 4), _REFUSAL_CAP) * (1 + chance) / 2


class Step(StrEnum):
    """What one round of the elector does."""

    STOP = "stop"
    CONNECT = "connect"
    REST = "rest"
    WATCH = "watch"
    STEP_DOWN = "step_down"
    TICK = "tick"
    PROBE = "probe"
    WAIT = "wait"
    KEEP = "keep"


@dataclass(frozen=True)
class Situation:
    """What the next step is decided from; the times are elapsed seconds.

    `due_at` is when the next round trip is due: an attempt to connect, a tick, a probe or a wait.
    `eligible_from` lies ahead while this worker must not lead.
    """

    role: Role
    connected: bool
    due_at: float
    eligible_from: float = 0.0
    stopping: bool = False


def next_step(situation: Situation, now: float) -> Step:
    """The one thing to do now."""
    if situation.stopping:
        return Step.STOP
    due = now >= situation.due_at
    if not situation.connected:
        return Step.CONNECT if due else Step.REST
    eligible = now >= situation.eligible_from
    if not eligible and situation.role in (Role.LEADER, Role.HEIR):
        return Step.STEP_DOWN
    if not due:
        return Step.WATCH
    if situation.role is Role.LEADER:
        return Step.TICK
    if not eligible:
        return Step.KEEP
    return Step.WAIT if situation.role is Role.HEIR else Step.PROBE
