"""Running a job at once because someone asked: never twice at a time, and outside the schedule."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from argus_sched.clock import Clock
from argus_sched.scheduling.claims import ClaimStore, RunNow
from argus_sched.scheduling.job import Job
from argus_sched.scheduling.report import Report
from argus_sched.scheduling.runs import Runs


class RunNowService:
    """Claims a run under the key `manual:<uuid>` and starts it here; it never moves the watermark.

    The guard is the open run itself. It is as good as its worker: once that is dead, by the same rule that
    declares runs interrupted, the next request gets through, so an aborted run blocks nobody for long.
    """

    def __init__(
        self,
        store: ClaimStore,
        runs: Runs,
        report: Report,
        clock: Clock,
        *,
        dead_after: float,
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        self.store = store
        self._runs = runs
        self._report = report
        self._clock = clock
        self._dead_after = dead_after
        self._new_id = new_id

    def __call__(self, job: Job) -> RunNow:
        """Start a run, or say why not; raises ClaimStoreError when the store is away."""
        self.store.beat(True)
        answer = self._ask(job)
        if answer.reason == "already_running" and self._bury_dead(job):
            answer = self._ask(job)
        if answer.fire is not None:
            self._runs.start(job, answer.fire)
            return answer
        if answer.reason == "already_running" and answer.retry_after is None:
            # By then a crash of the owner has been noticed, if it is one.
            return replace(answer, retry_after=self._dead_after)
        return answer

    def _ask(self, job: Job) -> RunNow:
        return self.store.run_now(job, self._clock.now(), f"manual:{self._new_id()}")

    def _bury_dead(self, job: Job) -> bool:
        found = self.store.orphans(timedelta(seconds=self._dead_after))
        dead = [orphan for orphan in found if orphan.dead and orphan.fire.job_id == job.id]
        buried = self.store.interrupt(dead) if dead else []
        for orphan in buried:
            self._report.interrupted(orphan)
        return bool(buried)
