"""The rules of the scheduler's lock: from looks at pg_locks to findings, one rule a function.

Exactly one session may hold the exact key, and between its ticks it sits idle. Some findings may be over by
themselves within seconds (a failover, a tick caught while it runs): they are `passing`, and the caller looks
again before it believes them.

Advisory locks are local to one server and are not replicated, so each server of a pack is judged for
itself: a holder on a standby guards nothing, and one holder on each of two writable servers is split brain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from argus_sched.agent.config.durations import format_duration
from argus_sched.agent.judging.lock_seats import (
    Looks,
    Seat,
    holders_of,
    looks_busy,
    shared_holders_of,
    waiters_of,
)
from argus_sched.agent.packs import LockCheck
from argus_sched.agent.status import Phase, Status

RESAMPLE_SPAN = timedelta(seconds=3)
TRANSACTION_BOUND = timedelta(seconds=60)
BUSY_LOOKS = 3
SILENT_TICKS = 3
STANDBY_NAME = "scheduler-standby:"


@dataclass(frozen=True)
class Finding:
    """What one rule says; `passing` when it may be over by itself within seconds."""

    status: Status
    phase: Phase
    summary: str
    reason: str = ""
    passing: bool = False


def findings_of(check: LockCheck, servers: Sequence[Looks]) -> Iterator[Finding]:
    """What every rule says, at least one finding; `servers` are distinct and hold at least one look each."""
    now = [looks[-1] for looks in servers]
    writable = [sample for sample in now if not sample.in_recovery]
    yield from _standby_holders(holders_of([sample for sample in now if sample.in_recovery]))
    if not writable:
        yield Finding(
            Status.UNKNOWN,
            Phase.BLIND,
            f"only standby servers were seen ({_list(sample.server for sample in now)})",
            "advisory locks are not replicated: point the pack's database at the primary",
        )
        return
    holders, shared = holders_of(writable), shared_holders_of(writable)
    yield from _count(check, holders, shared)
    if len(holders) == 1:
        yield from _holder(check, holders[0], servers)
    yield from _waiters(waiters_of(now))


def _standby_holders(holders: Sequence[Seat]) -> Iterator[Finding]:
    for seat in holders:
        yield Finding(
            Status.CRIT,
            Phase.STANDBY_HOLDER,
            f"{seat.place} holds the lock on a standby server",
            "a lock on a read replica guards nothing: point that worker at the primary",
        )


def _count(check: LockCheck, holders: Sequence[Seat], shared: Sequence[Seat]) -> Iterator[Finding]:
    if shared:
        yield Finding(
            Status.CRIT,
            Phase.SHARED,
            f"key {check.key} is held in shared mode by {_list(map(str, shared))}",
            "several can hold it at once, so it excludes nobody: take it with pg_try_advisory_lock",
        )
    elif not holders:
        yield Finding(
            Status.CRIT,
            Phase.UNHELD,
            f"no session holds key {check.key}",
            "no worker leads, so no job fires",
            passing=True,
        )
    if len(holders) > 1:
        yield Finding(
            Status.CRIT,
            Phase.CONTENDED,
            f"split brain: {len(holders)} sessions hold key {check.key}: "
            f"{_list(seat.place for seat in holders)}",
            "each of them fires every job: fence the old primary and stop its workers",
            passing=True,
        )


def _holder(check: LockCheck, seat: Seat, servers: Sequence[Looks]) -> Iterator[Finding]:
    if seat.row.pid == 0:
        yield Finding(
            Status.CRIT,
            Phase.IN_TRANSACTION,
            f"a prepared transaction holds key {check.key}",
            "no session owns it and no worker can lead: find it in pg_prepared_xacts and roll it back",
        )
        return
    yield from _name(check, seat)
    yield from _silence(check, seat)
    looks = next(looks for looks in servers if looks[-1] is seat.sample)
    yield _state(seat, looks)


def _name(check: LockCheck, seat: Seat) -> Iterator[Finding]:
    name, wanted = seat.row.application_name or "", check.holder_name
    if wanted is None or name == wanted or name.startswith(f"{wanted}:"):
        return
    yield Finding(
        Status.CRIT,
        Phase.FOREIGN_HOLDER,
        f"pid {seat.row.pid} holds the lock as {name!r}, not as {wanted!r}",
        "another program uses this key, or runs through a pooler: jobs may not fire",
        # A standby renames itself a moment after it has won.
        passing=name.startswith(STANDBY_NAME),
    )


def _silence(check: LockCheck, seat: Seat) -> Iterator[Finding]:
    if check.tick is None or seat.row.state_seconds is None:
        return
    silent, bound = timedelta(seconds=seat.row.state_seconds), check.tick * SILENT_TICKS
    if silent > bound:
        yield Finding(
            Status.CRIT,
            Phase.SILENT_HOLDER,
            f"{seat} has been silent for {_length(silent)}, more than {SILENT_TICKS} ticks of "
            f"{format_duration(check.tick)}",
            "a frozen or abandoned process still holds the lock; end it on "
            f"{seat.sample.server}: select pg_terminate_backend({seat.row.pid})",
            passing=silent <= bound + RESAMPLE_SPAN,
        )


def _state(seat: Seat, looks: Looks) -> Finding:
    match seat.row.state:
        case "idle":
            return Finding(Status.OK, Phase.HELD, f"held by {seat}, idle")
        case None | "disabled":
            return _hidden(seat)
        case "idle in transaction":
            return _in_transaction(seat)
        case "idle in transaction (aborted)":
            return Finding(
                Status.CRIT,
                Phase.ABORTED,
                f"{seat} holds the lock in an aborted transaction",
                "it cannot run another statement, and a rollback does not free a session lock: "
                f"restart the worker, or select pg_terminate_backend({seat.row.pid})",
            )
        case _:
            return _active(seat, looks)


def _hidden(seat: Seat) -> Finding:
    advice = (
        f"grant pg_monitor to {_quoted(seat.sample.role)}"
        if seat.row.state is None
        else "track_activities is off for it: turn it on"
    )
    return Finding(
        Status.UNKNOWN, Phase.BLIND, f"held by {seat}, but whether it is idle cannot be seen", advice
    )


def _in_transaction(seat: Seat) -> Finding:
    age = _seconds(seat.row.transaction_seconds, seat.row.state_seconds)
    return Finding(
        Status.CRIT if age > TRANSACTION_BOUND else Status.WARN,
        Phase.IN_TRANSACTION,
        f"{seat} has held the lock inside a transaction for {_length(age)}",
        "it blocks VACUUM, and idle_in_transaction_session_timeout would end it: put the lock's connection "
        "in autocommit",
        passing=age < RESAMPLE_SPAN,
    )


def _active(seat: Seat, looks: Looks) -> Finding:
    age = _seconds(seat.row.state_seconds)
    if age < RESAMPLE_SPAN and looks_busy(seat.row.pid, looks) < BUSY_LOOKS:
        return Finding(Status.OK, Phase.HELD, f"held by {seat}, in a short statement", passing=True)
    return Finding(
        Status.WARN,
        Phase.BUSY,
        f"{seat} is {seat.row.state}, its statement {_length(age)} old, "
        f"seen at work {looks_busy(seat.row.pid, looks)} times in a row",
        "the lock's connection should do nothing but tick",
        # Ticks, caught one after another, are not one long statement.
        passing=age < RESAMPLE_SPAN,
    )


def _waiters(waiting: Sequence[Seat]) -> Iterator[Finding]:
    strangers = [seat for seat in waiting if not (seat.row.application_name or "").startswith(STANDBY_NAME)]
    if strangers:
        yield Finding(
            Status.WARN,
            Phase.HELD,
            f"waiting for the lock: {_list(map(str, strangers))}",
            "a blocking pg_advisory_lock keeps a snapshot open: standbys should use pg_try_advisory_lock",
        )


def _seconds(*ages: float | None) -> timedelta:
    return timedelta(seconds=next((age for age in ages if age is not None), 0.0))


def _length(age: timedelta) -> str:
    # Tenths matter below a minute only.
    return format_duration(
        timedelta(seconds=round(age.total_seconds(), 1 if age < timedelta(minutes=1) else None))
    )


def _quoted(role: str | None) -> str:
    return '"' + role.replace('"', '""') + '"' if role else "the agent's role"


def _list(words: Iterable[str], most: int = 5) -> str:
    named = list(words)
    more = f" and {len(named) - most} more" if len(named) > most else ""
    return ", ".join(named[:most]) + more
