"""What one pass says about one target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from argus_sched.agent.status import Phase, Status

# The detail that says for how many seconds more nobody is told of a verdict; 0 or absent where it is news.
WAIT_KEY = "message_waits_seconds"


@dataclass(frozen=True)
class Result:
    """The verdict on one target: `target` is `app/job_id`, or `app/<id of the lock check>` for a lock.

    `check` is the kind's name, `summary` one short sentence for a table, `reason` the cause where one is
    known. `age_seconds` and `limit_seconds` are seconds. `blind_by` names the node of the target tree whose
    failure hides this target. `details` holds what only this kind knows (JSON-ready values); it is merged
    into the JSON output beside the other fields.
    """

    app: str
    check: str
    target: str
    status: Status
    phase: Phase
    summary: str
    reason: str = ""
    name: str = ""
    last_run: datetime | None = None
    age_seconds: float | None = None
    limit_seconds: float | None = None
    deadline: datetime | None = None
    blind_by: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Node:
    """One node of the target tree (host, docker, container, database): whether it could be read, and why not.

    `source` is its label in the metrics, for example `docker:labs-backend` or `database:labs`.
    """

    app: str
    source: str
    parent: str | None
    up: bool
    problem: str = ""


@dataclass(frozen=True)
class OwnState:
    """How the agent itself is after a pass: what people are still owed, and what it left out so far.

    `refused` names each channel that takes nothing until a person acts, with its reason.
    """

    unsent: int = 0
    oldest_unsent: datetime | None = None
    refused: tuple[str, ...] = ()
    incomplete_passes: int = 0
    gaps: int = 0


@dataclass(frozen=True)
class PassReport:
    """One whole pass: every result, every source that was read, and whether nothing was left out.

    `notes` are worth telling and hide nothing. `own` is None for a pass that tells nobody.
    """

    at: datetime
    results: tuple[Result, ...]
    nodes: tuple[Node, ...]
    complete: bool
    seconds: float
    state_saved: bool = True
    notes: tuple[str, ...] = ()
    own: OwnState | None = None
