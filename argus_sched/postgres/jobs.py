"""Job rows: the declared set, its watermarks, and the switches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from argus_sched.errors import ClaimStoreError
from argus_sched.postgres.link import Connection, Link
from argus_sched.scheduling.claims import TermView
from argus_sched.scheduling.job import Job

_NAMESPACE = """
INSERT INTO argus_sched.namespace (namespace, claim_store) VALUES (%s, %s)
ON CONFLICT (namespace) DO UPDATE SET claim_store = argus_sched.namespace.claim_store RETURNING claim_store
"""

# A new job, and one whose trigger changed, start from now: there is no gap to catch up.
_SYNC = """
INSERT INTO argus_sched.job AS j (namespace, job_id, name, trigger, watermark, next_due)
SELECT %(namespace)s, d.job_id, d.name, d.trigger, %(now)s, d.next_due
FROM unnest(%(job_id)s::text[], %(name)s::text[], %(trigger)s::text[], %(next_due)s::timestamptz[])
    AS d (job_id, name, trigger, next_due)
ON CONFLICT (namespace, job_id) DO UPDATE SET
    name = excluded.name, trigger = excluded.trigger, declared = true,
    watermark = CASE WHEN j.declared AND j.trigger = excluded.trigger
        THEN j.watermark ELSE excluded.watermark END,
    next_due = CASE WHEN j.declared AND j.trigger = excluded.trigger
        THEN j.next_due ELSE excluded.next_due END
WHERE NOT j.declared OR (j.name, j.trigger) IS DISTINCT FROM (excluded.name, excluded.trigger)
"""

_UNDECLARE = """
UPDATE argus_sched.job SET declared = false
WHERE namespace = %(namespace)s AND declared AND NOT job_id = ANY(%(job_id)s)
"""

_BEHIND = """
SELECT job_id, watermark FROM argus_sched.job
WHERE namespace = %s AND declared AND enabled AND (next_due IS NULL OR next_due <= %s)
"""

_SWITCH = """
WITH turned AS (
    UPDATE argus_sched.job SET enabled = %(enabled)s, auto_disabled = false,
        disabled_by = CASE WHEN %(enabled)s THEN NULL ELSE %(who)s END,
        disabled_reason = CASE WHEN %(enabled)s THEN NULL ELSE %(reason)s END,
        disabled_at = CASE WHEN %(enabled)s THEN NULL ELSE clock_timestamp() END,
        consecutive_failures = CASE WHEN %(enabled)s THEN 0 ELSE consecutive_failures END,
        watermark = CASE WHEN %(enabled)s THEN greatest(watermark, %(now)s) ELSE watermark END,
        next_due = CASE WHEN %(enabled)s THEN NULL ELSE next_due END
    WHERE namespace = %(namespace)s AND job_id = %(job_id)s AND enabled <> %(enabled)s
    RETURNING job_id
), told AS (
    INSERT INTO argus_sched.job_switch (namespace, job_id, enabled, who, reason)
    SELECT %(namespace)s, job_id, %(enabled)s, %(who)s, %(reason)s FROM turned
)
SELECT count(*) FROM turned
"""


class PostgresJobs:
    """The job rows of one namespace."""

    def __init__(self, link: Link, namespace: str, worker: str, claim_store: str) -> None:
        self._link = link
        self._namespace = namespace
        self._worker = worker
        self._claim_store = claim_store

    def open_namespace(self) -> None:
        """Record which store this namespace claims in; refuse when it is another."""
        ((recorded,),) = self._link.rows(_NAMESPACE, (self._namespace, self._claim_store))
        if recorded != self._claim_store:
            raise ClaimStoreError(
                f"namespace {self._namespace!r} claims in {recorded}, but this worker is configured for "
                f"{self._claim_store}: two stores would let one fire run twice; configure "
                f"claims={recorded!r}, or stop every worker and change argus_sched.namespace.claim_store"
            )

    def begin_term(self, jobs: Sequence[Job], schedule_hash: str, now: datetime) -> TermView:
        """Bring the rows up to the declared set, if that changed; then the jobs that have a gap."""
        before = self._recorded_hash()
        if before != schedule_hash:
            with self._link.connection(transaction=True) as connection:
                self._sync(connection, jobs, schedule_hash, now)
        behind = self._link.rows(_BEHIND, (self._namespace, now))
        return TermView(dict(behind), before if before not in (None, schedule_hash) else None)

    def _recorded_hash(self) -> str | None:
        query = "SELECT schedule_hash FROM argus_sched.namespace WHERE namespace = %s"
        rows = self._link.rows(query, (self._namespace,))
        if not rows:
            # The tables were dropped and made anew, or restored from before this namespace's first start.
            self.open_namespace()
            return None
        found: str | None = rows[0][0]
        return found

    def _sync(self, connection: Connection, jobs: Sequence[Job], schedule_hash: str, now: datetime) -> None:
        columns = {
            "namespace": self._namespace,
            "now": now,
            "job_id": [job.id for job in jobs],
            "name": [job.name for job in jobs],
            "trigger": [job.trigger_text for job in jobs],
            "next_due": [job.trigger.next_after(now) for job in jobs],
        }
        connection.execute(_SYNC, columns)
        connection.execute(_UNDECLARE, columns)
        connection.execute(
            "UPDATE argus_sched.namespace SET schedule_hash = %s, synced_by = %s, "
            "synced_at = clock_timestamp() WHERE namespace = %s",
            (schedule_hash, self._worker, self._namespace),
        )

    def switch(self, job_id: str, enabled: bool, who: str, reason: str, now: datetime) -> bool:
        """Switch a job on or off, with an entry in job_switch; False when it was so already."""
        parameters = {
            "namespace": self._namespace,
            "job_id": job_id,
            "enabled": enabled,
            "who": who,
            "reason": reason,
            "now": now,
        }
        ((count,),) = self._link.rows(_SWITCH, parameters)
        return bool(count)

    def disabled(self) -> Mapping[str, str]:
        """The jobs that are switched off, each with who did it and why."""
        rows = self._link.rows(
            "SELECT job_id, disabled_by || ': ' || disabled_reason FROM argus_sched.job "
            "WHERE namespace = %s AND NOT enabled",
            (self._namespace,),
        )
        return dict(rows)
