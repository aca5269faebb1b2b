"""The store of claims in Postgres: two connections of a worker, and what each part does over them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import psycopg

from argus_sched.errors import ClaimStoreError
from argus_sched.postgres import schema
from argus_sched.postgres.claims import PostgresClaims
from argus_sched.postgres.jobs import PostgresJobs
from argus_sched.postgres.link import Link
from argus_sched.postgres.runs import PostgresRuns
from argus_sched.postgres.workers import PostgresWorker
from argus_sched.scheduling.claims import AutoDisabled, Batch, Beat, Orphan, Result, RunNow, TermView, Verdict
from argus_sched.scheduling.job import Fire, Job

# A claim that takes longer than this is no use to a leader any more; what it did is read again.
CLAIM_TIMEOUT = "5s"
CHORE_TIMEOUT = "30s"


def note_store(dsn: str, namespace: str, worker: str, claim_store: str, migrate: bool) -> None:
    """Record that a namespace claims in another store; ClaimStoreError when it is on record with a third."""
    prepare(dsn, migrate)
    link = Link(dsn, f"argus-worker:{namespace}", {"statement_timeout": CHORE_TIMEOUT})
    try:
        PostgresJobs(link, namespace, worker, claim_store).open_namespace()
    finally:
        link.close()


def prepare(dsn: str, migrate: bool) -> None:
    """Create the tables if asked to, and check them; ClaimStoreError when the server cannot be reached."""
    try:
        if migrate:
            schema.migrate(dsn)
        schema.check(dsn)
    except psycopg.OperationalError as error:
        raise ClaimStoreError(f"the database cannot be reached: {' '.join(str(error).split())}") from error


class PostgresStore:
    """`ClaimStore` over Postgres.

    The claims have a connection of their own, used by the firing thread alone. The other one carries the
    worker's lock and everything that may be late: results, heartbeats, sweeps, switches.
    """

    name = "postgres"

    def __init__(
        self, dsn: str, namespace: str, worker: str, *, silence: float, migrate: bool = False
    ) -> None:
        self._dsn = dsn
        self._migrate = migrate
        self._worker = PostgresWorker(namespace, worker, silence)
        self._claim_link = Link(dsn, f"argus-claims:{namespace}", {"statement_timeout": CLAIM_TIMEOUT})
        self._link = Link(
            dsn, f"argus-worker:{namespace}", {"statement_timeout": CHORE_TIMEOUT}, self._worker.on_open
        )
        self._claims = PostgresClaims(self._claim_link, namespace, worker)
        self._begin = PostgresJobs(self._claim_link, namespace, worker, self.name)
        self._jobs = PostgresJobs(self._link, namespace, worker, self.name)
        self._runs = PostgresRuns(self._link, namespace, worker)
        self._manual = PostgresClaims(self._link, namespace, worker)

    def open(self, jobs: Iterable[Job], schedule_hash: str) -> None:  # noqa: ARG002 - other stores need the jobs
        """Check (or create) the tables, the namespace's store and this worker's row."""
        prepare(self._dsn, self._migrate)
        self._begin.open_namespace()
        self._worker.register(self._link, schedule_hash)

    def begin_term(
        self,
        epoch: int,  # noqa: ARG002 - the fence is in the claims
        jobs: Sequence[Job],
        schedule_hash: str,
        now: datetime,
    ) -> TermView:
        return self._begin.begin_term(jobs, schedule_hash, now)

    def claim(self, batch: Batch) -> list[Verdict]:
        return self._claims.claim(batch)

    def read_again(self, batch: Batch) -> list[Verdict]:
        return self._claims.read_again(batch)

    def reclaim(self, orphans: Sequence[Orphan], epoch: int) -> list[Fire | None]:
        return self._claims.reclaim(orphans, epoch)

    def give_back(self, fires: Sequence[Fire]) -> None:
        self._manual.give_back(fires)

    def disown(self, batch: Batch) -> None:
        self._claims.disown(batch)

    def finish(self, results: Sequence[Result], max_failures: Mapping[str, int]) -> list[AutoDisabled]:
        return self._runs.finish(results, max_failures)

    def beat(self, active: bool) -> Beat:
        return self._worker.beat(self._link, active)

    def other_sets(self) -> list[tuple[str, str, int]]:
        """(hash, host, pid) of living workers of this namespace whose set of jobs is another."""
        return self._worker.other_sets(self._link)

    def orphans(self, dead_after: timedelta) -> list[Orphan]:
        return self._runs.orphans(dead_after)

    def interrupt(self, orphans: Sequence[Orphan]) -> list[Orphan]:
        return self._runs.interrupt(orphans)

    def expire(self, orphans: Sequence[Orphan]) -> None:
        self._runs.expire(orphans)

    def forgotten(self, known: Sequence[Fire], older_than: timedelta) -> list[Fire]:
        return self._runs.forgotten(known, older_than)

    def prune(self, retention: timedelta, batch: int) -> int:
        return self._runs.prune(retention, batch)

    def run_now(self, job: Job, due: datetime, origin: str) -> RunNow:
        return self._manual.run_now(job, due, origin, str(uuid.uuid4()))

    def switch(self, job_id: str, enabled: bool, who: str, reason: str, now: datetime) -> bool:
        return self._jobs.switch(job_id, enabled, who, reason, now)

    def disabled(self) -> Mapping[str, str]:
        return self._jobs.disabled()

    def close(self) -> None:
        self._claim_link.close()
        self._worker.leave(self._link)
