"""What the scheduler asks of a store of claims, in values; Postgres and Redis answer it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from argus_sched.errors import ClaimStoreError
from argus_sched.scheduling.job import SCHEDULED, Fire, Job


class Outcome(StrEnum):
    """What became of a fire; a run is open while it is `running` or `given_back`."""

    RUNNING = "running"
    SUCCESS = "success"
    ERROR = "error"
    TARGET_MISSING = "target_missing"
    INTERRUPTED = "interrupted"  # its worker died between claim and finish
    GIVEN_BACK = "given_back"  # claimed, then refused before the body started; waits for another claim
    SKIPPED_OVERLAP = "skipped_overlap"
    MISSED = "missed"


FAILURES = (Outcome.ERROR, Outcome.TARGET_MISSING)


class OutcomeUnknownError(ClaimStoreError):
    """The connection broke while a claim was under way: read again before anything runs."""


class Verdict(StrEnum):
    """The store's answer to one want."""

    WON = "won"
    LOST = "lost"  # another worker answered for this fire
    DISABLED = "disabled"
    OVERLAP = "overlap"  # too many runs on other workers; recorded as skipped
    WAIT = "wait"  # the same, but the job wants every due time: ask again later
    FENCED = "fenced"  # a newer leader exists
    REFUSED = "refused"  # too old to be claimed safely


@dataclass(frozen=True, slots=True)
class Want:
    """One decision to put on record: run this fire, or why it does not run.

    `missed` counts the earlier due times this one answers for. `rank` numbers the runs of one job within a
    batch from 1, and `room` is how many more runs of the job may be open, those of this worker taken off.
    """

    job_id: str
    due: datetime
    outcome: Outcome = Outcome.RUNNING
    origin: str = SCHEDULED
    missed: int = 0
    reason: str = ""
    next_due: datetime | None = None
    room: int = 1
    rank: int = 1
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """Wants claimed in one step; the token tells, after an unknown outcome, which of them are ours."""

    token: str
    epoch: int
    wants: tuple[Want, ...]


@dataclass(frozen=True, slots=True)
class Orphan:
    """An open run that nobody executes: given back, or left by a worker that died."""

    fire: Fire
    worker: str
    dead: bool
    claimed_at: datetime


@dataclass(frozen=True, slots=True)
class Result:
    """How one run ended."""

    fire: Fire
    outcome: Outcome
    started_at: datetime
    finished_at: datetime
    error: str = ""


@dataclass(frozen=True, slots=True)
class TermView:
    """What a leader finds when its term begins: the jobs that have a gap, with their watermarks."""

    behind: Mapping[str, datetime] = field(default_factory=dict)
    changed_from: str | None = None  # the schedule hash that ran before, when it is another


@dataclass(frozen=True, slots=True)
class Beat:
    """The answer to a heartbeat: the store's clock minus ours, and for how long someone asks us to resign."""

    offset: float = 0.0
    resign_for: float | None = None


@dataclass(frozen=True, slots=True)
class AutoDisabled:
    """A job that was just switched off after failing too often."""

    job_id: str
    failures: int
    reason: str


@dataclass(frozen=True, slots=True)
class RunNow:
    """The answer to a request to run a job now: `fire` when accepted, else the reason.

    `reason` is `already_running` or `disabled`; with the former come the running owner, since when, and
    after how many seconds asking again makes sense.
    """

    fire: Fire | None = None
    reason: str = ""
    owner: str = ""
    started_at: datetime | None = None
    retry_after: float | None = None


class ClaimStore(Protocol):
    """Claims, run rows and switches of one namespace; each method raises ClaimStoreError when it is away."""

    name: str

    def open(self, jobs: Iterable[Job], schedule_hash: str) -> None:
        """Register this worker; ClaimStoreError for a namespace whose claims live in another store."""
        ...

    def begin_term(self, epoch: int, jobs: Sequence[Job], schedule_hash: str, now: datetime) -> TermView:
        """Register a changed set of jobs and say which have a gap."""
        ...

    def claim(self, batch: Batch) -> list[Verdict]:
        """Answer each want; raises OutcomeUnknownError when the connection broke under way."""
        ...

    def read_again(self, batch: Batch) -> list[Verdict]:
        """Answer a batch whose outcome is unknown: what is ours by its token is won."""
        ...

    def reclaim(self, orphans: Sequence[Orphan], epoch: int) -> list[Fire | None]:
        """Take orphans over, one fire (or None when another was faster) for each."""
        ...

    def give_back(self, fires: Sequence[Fire]) -> None:
        """Let go of claimed fires that did not start, each only if it is still ours at its attempt."""
        ...

    def disown(self, batch: Batch) -> None:
        """Let go of whatever a batch of unknown outcome claimed, by its token; none of it has started."""
        ...

    def finish(self, results: Sequence[Result], max_failures: Mapping[str, int]) -> list[AutoDisabled]:
        """Record how runs ended and count failures; returns the jobs that this switched off."""
        ...

    def beat(self, active: bool) -> Beat:
        """Show that this worker lives; `active` while it leads or runs something."""
        ...

    def orphans(self, dead_after: timedelta) -> list[Orphan]:
        """Open runs that were given back, or whose worker is dead.

        Dead means that its lock is free and its heartbeat older than `dead_after`.
        """
        ...

    def interrupt(self, orphans: Sequence[Orphan]) -> list[Orphan]:
        """Record runs of dead workers as interrupted; returns those that this call recorded."""
        ...

    def expire(self, orphans: Sequence[Orphan]) -> None:
        """Record given-back fires that grew too old as missed."""
        ...

    def forgotten(self, known: Sequence[Fire], older_than: timedelta) -> list[Fire]:
        """Open runs on record as ours that this process does not know: a claim whose answer never arrived."""
        ...

    def prune(self, retention: timedelta, batch: int) -> int:
        """Delete up to `batch` finished runs older than `retention`; returns how many went."""
        ...

    def run_now(self, job: Job, due: datetime, origin: str) -> RunNow:
        """Claim one manual run, unless the job is disabled or already runs."""
        ...

    def switch(self, job_id: str, enabled: bool, who: str, reason: str, now: datetime) -> bool:
        """Switch a job on or off, on record; an enabled job starts from `now`. False when nothing changed."""
        ...

    def other_sets(self) -> Sequence[tuple[str, str, int]]:
        """(hash, host, pid) of living workers of this namespace that declare another set of jobs."""
        ...

    def disabled(self) -> Mapping[str, str]:
        """The jobs that are switched off, each with who and why."""
        ...

    def close(self) -> None:
        """Say goodbye: free the instance lock and close connections."""
        ...
