"""How the scheduler's lock is judged: the worst of its findings is the verdict, the others are its reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argus_sched.advisory_keys import halves
from argus_sched.agent.check import Node, Result
from argus_sched.agent.judging.lock_findings import Finding, findings_of
from argus_sched.agent.judging.lock_seats import (
    Looks,
    all_idle,
    distinct,
    holders_of,
    shared_holders_of,
    waiters_of,
)
from argus_sched.agent.packs import LockCheck
from argus_sched.agent.status import Phase, Status

_SIGHTS = ("holders", "holder_pid", "holder_state", "holder_application", "holder_idle", "waiters")


def grade_lock(check: LockCheck, app: str, servers: Sequence[Looks]) -> Result:
    """The verdict on one lock.

    `servers` holds, for each server of the pack, the looks at it, oldest first and at least one. `details`
    carries what the lock alone knows: `holders`, `holder_pid`, `holder_state`, `holder_application`,
    `holder_idle` (None where the state is hidden), `waiters`, `key`, `halves` (classid, objid), and
    `hold_message_seconds`: how long the verdict must last before a person is told. Rules: design.md 5.3.
    """
    servers = distinct(servers)
    findings = sorted(findings_of(check, servers), key=lambda finding: -finding.status.severity)
    worst = findings[0]
    return Result(
        app=app,
        check=check.kind,
        target=f"{app}/{check.id}",
        status=worst.status,
        phase=worst.phase,
        summary=worst.summary,
        reason="; ".join(text for text in (worst.reason, *map(_aside, findings[1:])) if text),
        details=_details(check, servers, worst),
    )


def blind_lock(check: LockCheck, app: str, node: Node, seen: Result | None = None) -> Result:
    """The verdict on a lock that `node`'s failure hides; `seen` is what the other databases showed."""
    nothing = {"key": check.key, "halves": list(halves(check.key)), **dict.fromkeys(_SIGHTS)}
    return Result(
        app=app,
        check=check.kind,
        target=f"{app}/{check.id}",
        status=Status.UNKNOWN,
        phase=Phase.BLIND,
        summary=f"the lock cannot be seen: {node.source} is down",
        reason=node.problem,
        blind_by=node.source,
        details={**(seen.details if seen else nothing), "hold_message_seconds": 0.0},
    )


def may_pass(check: LockCheck, servers: Sequence[Looks]) -> bool:
    """True when a look a moment later may change the verdict for a harmless reason."""
    return any(finding.passing for finding in findings_of(check, distinct(servers)))


def _details(check: LockCheck, servers: Sequence[Looks], worst: Finding) -> dict[str, Any]:
    now = [looks[-1] for looks in servers]
    holders = holders_of(now)
    # The holder that counts is the one on a writable server, if there is one.
    first = min(holders, key=lambda seat: seat.sample.in_recovery, default=None)
    return {
        "key": check.key,
        "halves": list(halves(check.key)),
        "holders": len(holders),
        "holder_pid": first.row.pid if first else None,
        "holder_state": first.row.state if first else None,
        "holder_application": first.row.application_name if first else None,
        "holder_idle": all_idle(holders),
        "holder_servers": [seat.sample.server for seat in holders],
        "shared_holders": len(shared_holders_of(now)),
        "waiters": len(waiters_of(now)),
        "looks": max(map(len, servers)),
        "hold_message_seconds": check.takeover.total_seconds() if worst.phase is Phase.UNHELD else 0.0,
    }


def _aside(finding: Finding) -> str:
    return "" if finding.status is Status.OK else finding.summary
