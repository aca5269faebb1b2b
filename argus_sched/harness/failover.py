"""One fault by hand against a running application, and the timeline of what it did, as it happens.

It touches one session of the database that was named, or the process that session belongs to.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf
from pathlib import Path

from argus_sched.errors import SettingsError, SourceError
from argus_sched.harness.aftermath import afterwards
from argus_sched.postgres.witness import Seat, Witness

Tell = Callable[[str], None]
LEADER_NAME = re.compile(r"scheduler-leader:(\d+)")
GLANCE = 0.002
KEYS = 2**63  # so many numbers on each side of 0


@dataclass(frozen=True)
class Leader:
    """The session that holds the lock and, where it is on this machine, its process."""

    seat: Seat
    pid: int | None


def fail_over(dsn: str, key: int, fault: str, seconds: float, tell: Tell) -> bool:
    """Do one fault to whoever holds the lock and tell each change; True when another session took over.

    Raises SourceError when nobody holds the lock, SettingsError when the fault cannot be done from here.
    """
    _check(dsn, key, seconds)
    with contextlib.closing(Witness(dsn, key)) as witness:
        leader = find_leader(witness, key)
        tell(f"{describe(leader.seat)} holds the lock")
        with _FAULTS[fault](leader, witness, tell) as began:
            return _follow(witness, leader.seat.pid, began, seconds, tell)


def _check(dsn: str, key: int, seconds: float) -> None:
    """Refuse what cannot be meant, before anything is touched."""
    if not dsn.strip():
        raise SettingsError("--dsn is empty: name the application's database")
    if not -KEYS <= key < KEYS:
        raise SettingsError(f"--key {key} is no lock of Postgres: use a number of 64 bits")
    if not 0 < seconds < inf:
        raise SettingsError(f"--seconds {seconds:g} is no time to wait: use a number above 0")


def find_leader(witness: Witness, key: int) -> Leader:
    """Who holds the lock now."""
    holders = witness.holders()
    if holders is None:
        raise SourceError("the database does not answer: check --dsn")
    if not holders:
        raise SourceError(f"nobody holds the lock {key} in this database: check --dsn and --key")
    seat = witness.seat(holders[0])
    if seat is None:
        raise SourceError("the leader went away while it was looked at: try again")
    return Leader(seat, _process_of(seat))


def describe(seat: Seat) -> str:
    """A session as a person reads it."""
    return f"session {seat.pid} ({seat.name or 'no name'})"


def _follow(witness: Witness, old: int, began: float, seconds: float, tell: Tell) -> bool:
    last: tuple[int, ...] = (old,)
    passed = 0.0
    while passed < seconds:
        holders, passed = witness.holders(), time.monotonic() - began
        if holders is not None and holders != last:
            _tell_change(witness, holders, passed, tell)
            last = holders
        if holders and old not in holders:
            tell(f"another session leads {passed * 1000:.0f} ms after the fault")
            return True
        time.sleep(GLANCE)
    tell(f"no other session took over within {seconds:g} s")
    return False


def _tell_change(witness: Witness, holders: tuple[int, ...], passed: float, tell: Tell) -> None:
    seats = [witness.seat(pid) for pid in holders]
    names = " and ".join(describe(seat) for seat in seats if seat is not None) or "nobody"
    verb = "hold" if len(holders) > 1 else "holds"
    tell(f"{names} {verb} the lock, {passed * 1000:.0f} ms after the fault")


@contextlib.contextmanager
def _terminate(leader: Leader, witness: Witness, tell: Tell) -> Iterator[float]:
    tell(f"pg_terminate_backend({leader.seat.pid})")
    began = time.monotonic()
    if not witness.terminate(leader.seat.pid):
        raise SourceError(
            f"{describe(leader.seat)} could not be ended: log in as its role or a member of pg_signal_backend"
        )
    yield began


@contextlib.contextmanager
def _kill(leader: Leader, witness: Witness, tell: Tell) -> Iterator[float]:  # noqa: ARG001
    pid = _needed(leader)
    tell(f"kill -9 {pid}")
    began = time.monotonic()
    _signal(pid, signal.SIGKILL)
    yield began


@contextlib.contextmanager
def _freeze(leader: Leader, witness: Witness, tell: Tell) -> Iterator[float]:  # noqa: ARG001
    pid = _needed(leader)
    tell(f"SIGSTOP to process {pid}")
    try:
        with afterwards("kill", "-CONT", str(pid)):
            began = time.monotonic()
            _signal(pid, signal.SIGSTOP)
            yield began
    finally:
        tell(f"SIGCONT to process {pid}")


@contextlib.contextmanager
def _partition(leader: Leader, witness: Witness, tell: Tell) -> Iterator[float]:
    program, client, server = shutil.which("iptables"), leader.seat.client_port, witness.address[1]
    if program is None or os.geteuid() != 0:
        raise SettingsError(
            "a partition of a running application needs root and iptables: use --freeze or --terminate"
        )
    _needed(leader)
    rules = [
        ["INPUT", "-p", "tcp", "--sport", str(server), "--dport", str(client), "-j", "DROP"],
        ["OUTPUT", "-p", "tcp", "--sport", str(client), "--dport", str(server), "-j", "DROP"],
    ]
    tell(f"dropping every packet between port {client} and port {server}")
    try:
        with contextlib.ExitStack() as stack:
            for rule in rules:
                stack.enter_context(afterwards(program, "-w", "-D", *rule))
                _drop(program, rule)
            yield time.monotonic()
    finally:
        tell("packets pass again")


# Each does its fault, gives the moment at which it was done, and takes back what can be taken back.
_FAULTS = {"terminate": _terminate, "kill": _kill, "freeze": _freeze, "partition": _partition}


def _drop(program: str, rule: list[str]) -> None:
    done = subprocess.run([program, "-w", "-I", *rule], check=False, capture_output=True, text=True)
    if done.returncode:
        raise SettingsError(
            f"packets cannot be dropped here ({' '.join(done.stderr.split())}): use --freeze or --terminate"
        )


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except PermissionError as error:
        raise SettingsError(
            f"process {pid} belongs to another user: run this as root or as that user, or use --terminate"
        ) from error
    except ProcessLookupError as error:
        raise SourceError(f"process {pid} has ended by itself: try again") from error


def _needed(leader: Leader) -> int:
    if leader.seat.client_port is None:
        raise SettingsError(
            f"{describe(leader.seat)} does not show this role its port: log in as a member of "
            "pg_read_all_stats, or use --terminate"
        )
    if leader.seat.client_port < 0:
        raise SettingsError(
            f"{describe(leader.seat)} came through a Unix socket, which does not tell its process: "
            "use --terminate"
        )
    if leader.pid is None:
        raise SettingsError(
            f"{describe(leader.seat)} does not belong to a process of this machine: "
            "run this on the leader's host, as root or as its user, or use --terminate"
        )
    return leader.pid


def _process_of(seat: Seat) -> int | None:
    """The process that a session names, when it is on this machine and has a socket of the session's port."""
    match = LEADER_NAME.fullmatch(seat.name)
    pid = int(match[1]) if match else 0
    return pid if pid and Path(f"/proc/{pid}").exists() and _owns_port(pid, seat.client_port) else None


def _owns_port(pid: int, port: int | None) -> bool:
    """Whether `pid` has a TCP socket of this local port."""
    with contextlib.suppress(OSError):
        inodes = {str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()}
        for table in ("tcp", "tcp6"):
            for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
                fields = line.split()
                if int(fields[1].rpartition(":")[2], 16) == port and f"socket:[{fields[9]}]" in inodes:
                    return True
    return False
