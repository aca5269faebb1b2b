"""Run rows after the claim: how runs ended, what dead workers left behind, and pruning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from argus_sched.postgres.link import Link
from argus_sched.scheduling.auto_disable import failure_streaks
from argus_sched.scheduling.claims import AutoDisabled, Orphan, Outcome, Result
from argus_sched.scheduling.job import Fire

# One statement, so one round trip: ends are recorded, failures in a row counted, and jobs that failed too
# often switched off. A run that was taken for interrupted and then ended after all (its worker had only been
# frozen) gets its true outcome: the row is still that worker's, at that attempt.
_FINISH = """
WITH ended AS (
    UPDATE argus_sched.run r SET outcome = d.outcome, started_at = d.started_at,
        finished_at = d.finished_at, error = nullif(d.error, '')
    FROM unnest(
        %(job_id)s::text[], %(due)s::timestamptz[], %(origin)s::text[], %(attempt)s::int[],
        %(outcome)s::text[], %(started_at)s::timestamptz[], %(finished_at)s::timestamptz[], %(error)s::text[]
    ) AS d (job_id, due, origin, attempt, outcome, started_at, finished_at, error)
    WHERE r.namespace = %(namespace)s AND r.job_id = d.job_id AND r.due = d.due AND r.origin = d.origin
        AND r.worker = %(worker)s AND r.attempt = d.attempt
), streak AS (
    SELECT j.job_id, c.reason,
        CASE WHEN c.afresh THEN 0 ELSE j.consecutive_failures END + c.failures AS failures,
        j.enabled AND c.failures > 0
            AND CASE WHEN c.afresh THEN 0 ELSE j.consecutive_failures END + c.failures >= c.most AS off
    FROM unnest(
        %(streak_of)s::text[], %(afresh)s::bool[], %(failures)s::int[], %(reason)s::text[], %(most)s::int[]
    ) AS c (job_id, afresh, failures, reason, most)
    JOIN argus_sched.job j ON j.namespace = %(namespace)s AND j.job_id = c.job_id
    WHERE c.failures > 0 OR (c.afresh AND j.consecutive_failures > 0)
    FOR UPDATE OF j
), counted AS (
    UPDATE argus_sched.job j SET consecutive_failures = s.failures,
        enabled = j.enabled AND NOT s.off, auto_disabled = j.auto_disabled OR s.off,
        disabled_by = CASE WHEN s.off THEN 'scheduler' ELSE j.disabled_by END,
        disabled_reason = CASE WHEN s.off THEN s.reason ELSE j.disabled_reason END,
        disabled_at = CASE WHEN s.off THEN clock_timestamp() ELSE j.disabled_at END
    FROM streak s WHERE j.namespace = %(namespace)s AND j.job_id = s.job_id
    RETURNING j.job_id, s.failures, s.reason, s.off
), told AS (
    INSERT INTO argus_sched.job_switch (namespace, job_id, enabled, who, reason)
    SELECT %(namespace)s, job_id, false, 'scheduler', reason FROM counted WHERE off
)
SELECT job_id, failures, reason FROM counted WHERE off
"""

_OPEN = """
SELECT r.job_id, r.due, r.origin, r.epoch, r.attempt, r.worker::text, r.outcome = 'running', r.claimed_at
FROM argus_sched.run r LEFT JOIN argus_sched.worker w ON w.instance = r.worker
WHERE r.namespace = %(namespace)s AND r.finished_at IS NULL AND (
    r.outcome = 'given_back' OR (r.worker <> %(worker)s AND (
        w.instance IS NULL OR (w.heartbeat_at < clock_timestamp() - %(dead_after)s AND NOT EXISTS (
            SELECT FROM pg_locks l
            WHERE l.locktype = 'advisory' AND l.granted AND l.mode = 'ExclusiveLock' AND l.objsubid = 1
                AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
                AND l.classid::bigint = (w.lock_key >> 32) & 4294967295
                AND l.objid::bigint = w.lock_key & 4294967295)))))
ORDER BY r.due
"""

_CLOSE = """
UPDATE argus_sched.run r SET outcome = %(outcome)s, finished_at = clock_timestamp(), error = %(error)s
FROM unnest(
    %(job_id)s::text[], %(due)s::timestamptz[], %(origin)s::text[], %(attempt)s::int[], %(owner)s::uuid[]
) AS o (job_id, due, origin, attempt, owner)
WHERE r.namespace = %(namespace)s AND r.job_id = o.job_id AND r.due = o.due AND r.origin = o.origin
    AND r.worker = o.owner AND r.attempt = o.attempt AND r.finished_at IS NULL AND r.outcome = %(was)s
RETURNING r.job_id, r.due, r.origin
"""

_FORGOTTEN = """
SELECT job_id, due, origin, epoch, attempt FROM argus_sched.run
WHERE namespace = %s AND worker = %s AND finished_at IS NULL AND outcome = 'running'
    AND claimed_at < clock_timestamp() - %s
"""

_PRUNE = """
DELETE FROM argus_sched.run WHERE ctid IN (
    SELECT ctid FROM argus_sched.run
    WHERE namespace = %s AND finished_at IS NOT NULL AND claimed_at < now() - %s LIMIT %s)
RETURNING 1
"""

_PRUNE_WORKERS = """
DELETE FROM argus_sched.worker w
WHERE w.namespace = %s AND w.heartbeat_at < now() - %s AND NOT EXISTS (
    SELECT FROM argus_sched.run r
    WHERE r.namespace = w.namespace AND r.worker = w.instance AND r.finished_at IS NULL)
"""


class PostgresRuns:
    """The run rows of one namespace, as one worker sees them."""

    def __init__(self, link: Link, namespace: str, worker: str) -> None:
        self._link = link
        self._namespace = namespace
        self._worker = worker

    def finish(self, results: Sequence[Result], max_failures: Mapping[str, int]) -> list[AutoDisabled]:
        """Record ends and count failures; the jobs that this switched off."""
        streaks = failure_streaks(results)
        parameters = self._keys([result.fire for result in results]) | {
            "worker": self._worker,
            "outcome": [str(result.outcome) for result in results],
            "started_at": [result.started_at for result in results],
            "finished_at": [result.finished_at for result in results],
            "error": [result.error for result in results],
            "streak_of": list(streaks),
            "afresh": [afresh for afresh, _, _ in streaks.values()],
            "failures": [failures for _, failures, _ in streaks.values()],
            "reason": [reason for _, _, reason in streaks.values()],
            "most": [max_failures[job_id] for job_id in streaks],
        }
        return [AutoDisabled(*row) for row in self._link.rows(_FINISH, parameters)]

    def orphans(self, dead_after: timedelta) -> list[Orphan]:
        """Open runs that nobody executes, oldest due first."""
        parameters = {"namespace": self._namespace, "worker": self._worker, "dead_after": dead_after}
        return [
            Orphan(Fire(due, job_id, epoch, attempt, origin), worker, dead, claimed_at)
            for job_id, due, origin, epoch, attempt, worker, dead, claimed_at in self._link.rows(
                _OPEN, parameters
            )
        ]

    def interrupt(self, orphans: Sequence[Orphan]) -> list[Orphan]:
        """Record runs of dead workers as interrupted; those that this call recorded."""
        error = "its worker died between claim and finish"
        closed = self._close(orphans, Outcome.RUNNING, Outcome.INTERRUPTED, error)
        return [orphan for orphan in orphans if orphan.fire.key in closed]

    def expire(self, orphans: Sequence[Orphan]) -> None:
        """Record given-back fires as missed."""
        self._close(orphans, Outcome.GIVEN_BACK, Outcome.MISSED, "given back, then older than its window")

    def forgotten(self, known: Sequence[Fire], older_than: timedelta) -> list[Fire]:
        """Open runs on record as ours that are not among `known`."""
        keys = {(*fire.key, fire.attempt) for fire in known}
        rows = self._link.rows(_FORGOTTEN, (self._namespace, self._worker, older_than))
        return [
            Fire(due, job_id, epoch, attempt, origin)
            for job_id, due, origin, epoch, attempt in rows
            if (job_id, due, origin, attempt) not in keys
        ]

    def prune(self, retention: timedelta, batch: int) -> int:
        """Delete up to `batch` old finished runs, and workers that were not heard of for as long."""
        gone = self._link.rows(_PRUNE, (self._namespace, retention, batch))
        self._link.rows(_PRUNE_WORKERS, (self._namespace, retention))
        return len(gone)

    def _close(
        self, orphans: Sequence[Orphan], was: Outcome, outcome: Outcome, error: str
    ) -> set[tuple[object, ...]]:
        parameters = self._keys([orphan.fire for orphan in orphans]) | {
            "owner": [orphan.worker for orphan in orphans],
            "was": str(was),
            "outcome": str(outcome),
            "error": error,
        }
        return set(self._link.rows(_CLOSE, parameters))

    def _keys(self, fires: Sequence[Fire]) -> dict[str, object]:
        return {
            "namespace": self._namespace,
            "job_id": [fire.job_id for fire in fires],
            "due": [fire.due for fire in fires],
            "origin": [fire.origin for fire in fires],
            "attempt": [fire.attempt for fire in fires],
        }
