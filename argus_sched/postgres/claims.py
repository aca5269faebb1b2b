"""Claims in Postgres: the primary key of `run` is the claim, and the rows that came back are the answer."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime

from argus_sched.postgres.arrays import plain_array, quoted_array
from argus_sched.postgres.link import Link
from argus_sched.scheduling.claims import Batch, Orphan, Outcome, RunNow, Verdict, Want
from argus_sched.scheduling.job import Fire, Job

# Every want gets its verdict, its row and its job's new watermark in this one statement. It is conditional on
# the leader's epoch, so a leader that was replaced claims nothing; rows are taken in the order of the key, so
# that two leaders of the same millisecond queue behind each other and do not deadlock.
_CLAIM = """
WITH want AS MATERIALIZED (
    SELECT * FROM unnest(
        %(job_id)s::text[], %(due)s::timestamptz[], %(origin)s::text[], %(outcome)s::text[],
        %(missed)s::int[], %(reason)s::text[], %(next_due)s::timestamptz[], %(room)s::int[],
        %(rank)s::int[], %(waits)s::bool[]
    ) WITH ORDINALITY AS w (job_id, due, origin, outcome, missed, reason, next_due, room, rank, waits, n)
), fence AS MATERIALIZED (
    SELECT %(epoch)s = 0 OR EXISTS (
        SELECT FROM argus_sched.leader WHERE namespace = %(namespace)s AND epoch = %(epoch)s
    ) AS holds
), elsewhere AS MATERIALIZED (
    SELECT job_id, count(*) AS runs FROM argus_sched.run
    WHERE namespace = %(namespace)s AND finished_at IS NULL AND outcome = 'running' AND worker <> %(worker)s
    GROUP BY job_id
), decided AS MATERIALIZED (
    SELECT w.*, CASE
        WHEN NOT (SELECT holds FROM fence) THEN 'fenced'
        WHEN NOT coalesce(j.enabled, true) THEN 'disabled'
        WHEN w.outcome <> 'running' OR coalesce(e.runs, 0) + w.rank <= w.room THEN 'won'
        WHEN w.waits THEN 'wait'
        ELSE 'overlap'
    END AS verdict
    FROM want w
    LEFT JOIN argus_sched.job j ON j.namespace = %(namespace)s AND j.job_id = w.job_id
    LEFT JOIN elsewhere e ON e.job_id = w.job_id
), taken AS (
    INSERT INTO argus_sched.run
        (namespace, job_id, due, origin, outcome, worker, epoch, token, missed, error, finished_at)
    SELECT %(namespace)s, job_id, due, origin,
        CASE verdict WHEN 'overlap' THEN 'skipped_overlap' ELSE outcome END,
        %(worker)s, %(epoch)s, %(token)s, missed, nullif(reason, ''),
        CASE WHEN verdict = 'overlap' OR outcome <> 'running' THEN clock_timestamp() END
    FROM decided WHERE verdict IN ('won', 'overlap') ORDER BY job_id, due, origin
    ON CONFLICT DO NOTHING
    RETURNING job_id, due, origin
), moved AS (
    UPDATE argus_sched.job j SET watermark = d.due, next_due = d.next_due
    FROM (
        SELECT job_id, max(due) AS due, max(next_due) AS next_due FROM decided
        WHERE verdict IN ('won', 'overlap') AND origin = 'schedule' GROUP BY job_id
    ) d
    WHERE j.namespace = %(namespace)s AND j.job_id = d.job_id AND j.watermark < d.due
)
SELECT string_agg(
    CASE WHEN d.verdict IN ('won', 'overlap') AND t.job_id IS NULL THEN 'lost' ELSE d.verdict END,
    ',' ORDER BY d.n)
FROM decided d LEFT JOIN taken t USING (job_id, due, origin)
"""

_OURS = """
SELECT r.job_id, r.due, r.origin, r.outcome
FROM unnest(%(job_id)s::text[], %(due)s::timestamptz[], %(origin)s::text[]) AS w (job_id, due, origin)
JOIN argus_sched.run r USING (job_id, due, origin)
WHERE r.namespace = %(namespace)s AND r.worker = %(worker)s AND r.token = %(token)s
"""

_RECLAIM = """
UPDATE argus_sched.run r SET worker = %(worker)s, epoch = %(epoch)s, outcome = 'running', started_at = NULL,
    token = %(token)s, claimed_at = clock_timestamp(),
    attempt = r.attempt + CASE WHEN o.dead THEN 1 ELSE 0 END
FROM unnest(
    %(job_id)s::text[], %(due)s::timestamptz[], %(origin)s::text[], %(attempt)s::int[], %(owner)s::uuid[],
    %(dead)s::bool[]
) AS o (job_id, due, origin, attempt, owner, dead)
WHERE r.namespace = %(namespace)s AND r.job_id = o.job_id AND r.due = o.due AND r.origin = o.origin
    AND r.worker = o.owner AND r.attempt = o.attempt AND r.finished_at IS NULL
    AND r.outcome = CASE WHEN o.dead THEN 'running' ELSE 'given_back' END
    AND (%(epoch)s = 0 OR EXISTS (
        SELECT FROM argus_sched.leader WHERE namespace = %(namespace)s AND epoch = %(epoch)s))
RETURNING r.job_id, r.due, r.origin, r.attempt
"""

# A worker that was frozen or cut off so long that its fire was taken for interrupted knows better: its body
# never began, so another may run it.
_GIVE_BACK = """
UPDATE argus_sched.run r SET outcome = 'given_back', finished_at = NULL, error = NULL
FROM unnest(%(job_id)s::text[], %(due)s::timestamptz[], %(origin)s::text[], %(attempt)s::int[])
    AS g (job_id, due, origin, attempt)
WHERE r.namespace = %(namespace)s AND r.job_id = g.job_id AND r.due = g.due AND r.origin = g.origin
    AND r.worker = %(worker)s AND r.attempt = g.attempt AND r.outcome IN ('running', 'interrupted')
"""

_DISOWN = """
UPDATE argus_sched.run r SET outcome = 'given_back'
FROM unnest(%(job_id)s::text[], %(due)s::timestamptz[], %(origin)s::text[]) AS w (job_id, due, origin)
WHERE r.namespace = %(namespace)s AND r.job_id = w.job_id AND r.due = w.due AND r.origin = w.origin
    AND r.worker = %(worker)s AND r.token = %(token)s AND r.outcome = 'running'
"""

_OPEN_RUN = """
SELECT coalesce(w.host || ':' || w.pid, r.worker::text), r.claimed_at
FROM argus_sched.run r LEFT JOIN argus_sched.worker w ON w.instance = r.worker
WHERE r.namespace = %s AND r.job_id = %s AND r.finished_at IS NULL AND r.outcome = 'running'
ORDER BY r.claimed_at
"""


_VERDICTS = {verdict.value: verdict for verdict in Verdict}


class PostgresClaims:
    """The claims of one worker in one namespace, over a connection of their own."""

    def __init__(self, link: Link, namespace: str, worker: str) -> None:
        self._link = link
        self._namespace = namespace
        self._worker = worker

    def claim(self, batch: Batch) -> list[Verdict]:
        """One verdict for each want, in order; see `ClaimStore.claim`."""
        ((verdicts,),) = self._link.rows(_CLAIM, self._columns(batch))
        return [_VERDICTS[verdict] for verdict in verdicts.split(",")]

    def read_again(self, batch: Batch) -> list[Verdict]:
        """Settle a batch whose answer never came.

        Claiming once more waits for a first attempt that is still under way; then whatever carries our token
        is ours, by whichever of the two.
        """
        verdicts = self.claim(batch)
        rows = self._link.rows(_OURS, self._columns(batch))
        ours = {(job_id, due, origin): outcome for job_id, due, origin, outcome in rows}
        return [
            self._settled(want, verdict, ours) for want, verdict in zip(batch.wants, verdicts, strict=True)
        ]

    def _settled(self, want: Want, verdict: Verdict, ours: dict[tuple[str, object, str], str]) -> Verdict:
        outcome = ours.get((want.job_id, want.due, want.origin))
        if outcome is None:
            return verdict
        if outcome == Outcome.GIVEN_BACK:
            return Verdict.LOST
        skipped = outcome == Outcome.SKIPPED_OVERLAP and want.outcome is Outcome.RUNNING
        return Verdict.OVERLAP if skipped else Verdict.WON

    def reclaim(self, orphans: Sequence[Orphan], epoch: int) -> list[Fire | None]:
        """Take open runs over that nobody executes; None where another worker was faster."""
        rows = self._link.rows(
            _RECLAIM,
            self._keys([orphan.fire for orphan in orphans])
            | {
                "epoch": epoch,
                "token": str(uuid.uuid4()),
                "owner": [orphan.worker for orphan in orphans],
                "dead": [orphan.dead for orphan in orphans],
            },
        )
        attempts = {(job_id, due, origin): attempt for job_id, due, origin, attempt in rows}
        return [
            Fire(fire.due, fire.job_id, epoch, attempts[fire.key], fire.origin)
            if fire.key in attempts
            else None
            for fire in (orphan.fire for orphan in orphans)
        ]

    def give_back(self, fires: Sequence[Fire]) -> None:
        """Let go of fires that did not start; each only while it is ours at its attempt."""
        self._link.rows(_GIVE_BACK, self._keys(fires))

    def disown(self, batch: Batch) -> None:
        """Let go of what a batch claimed, if it claimed anything, by its token."""
        self._link.rows(_DISOWN, self._columns(batch))

    def run_now(self, job: Job, due: datetime, origin: str, token: str) -> RunNow:
        """Claim one manual run; the job's row is locked meanwhile, so that of two requests one wins."""
        with self._link.connection(transaction=True) as connection:
            row = connection.execute(
                "SELECT enabled FROM argus_sched.job WHERE namespace = %s AND job_id = %s FOR UPDATE",
                (self._namespace, job.id),
            ).fetchone()
            if row is not None and not row[0]:
                return RunNow(reason="disabled")
            running = connection.execute(_OPEN_RUN, (self._namespace, job.id)).fetchall()
            if len(running) >= job.max_instances:
                owner, since = running[0]
                return RunNow(reason="already_running", owner=owner, started_at=since)
            connection.execute(
                "INSERT INTO argus_sched.run (namespace, job_id, due, origin, outcome, worker, token) "
                "VALUES (%s, %s, %s, %s, 'running', %s, %s)",
                (self._namespace, job.id, due, origin, self._worker, token),
            )
        return RunNow(fire=Fire(due, job.id, origin=origin))

    def _columns(self, batch: Batch) -> dict[str, object]:
        wants = batch.wants
        return {
            "job_id": quoted_array([want.job_id for want in wants]),
            "due": quoted_array([want.due.isoformat() for want in wants]),
            "origin": quoted_array([want.origin for want in wants]),
            "outcome": quoted_array([want.outcome.value for want in wants]),
            "missed": plain_array([want.missed for want in wants]),
            "reason": quoted_array([want.reason for want in wants]),
            "next_due": quoted_array(
                [want.next_due.isoformat() if want.next_due else None for want in wants]
            ),
            "room": plain_array([want.room for want in wants]),
            "rank": plain_array([want.rank for want in wants]),
            "waits": plain_array([want.waits for want in wants]),
            "namespace": self._namespace,
            "worker": self._worker,
            "token": batch.token,
            "epoch": batch.epoch,
        }

    def _keys(self, fires: Sequence[Fire]) -> dict[str, object]:
        return {
            "namespace": self._namespace,
            "worker": self._worker,
            "job_id": [fire.job_id for fire in fires],
            "due": [fire.due for fire in fires],
            "origin": [fire.origin for fire in fires],
            "attempt": [fire.attempt for fire in fires],
        }
