"""No claims at all: for a process that is alone, and for development without a store."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from argus_sched.scheduling.auto_disable import failure_streaks
from argus_sched.scheduling.claims import (
    AutoDisabled,
    Batch,
    Beat,
    Orphan,
    Result,
    RunNow,
    TermView,
    Verdict,
)
from argus_sched.scheduling.job import Fire, Job


class Unclaimed:
    """`ClaimStore` in memory: grants everything, remembers switches and failures while the process lives."""

    name = "none"

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._off: dict[str, str] = {}
        self._failures: dict[str, int] = {}
        self._manual: dict[str, Fire] = {}

    def open(self, jobs: Iterable[Job], schedule_hash: str) -> None:
        """Nothing to register."""

    def begin_term(self, epoch: int, jobs: Sequence[Job], schedule_hash: str, now: datetime) -> TermView:  # noqa: ARG002
        return TermView()

    def claim(self, batch: Batch) -> list[Verdict]:
        with self._lock:
            return [Verdict.DISABLED if want.job_id in self._off else Verdict.WON for want in batch.wants]

    def read_again(self, batch: Batch) -> list[Verdict]:
        return self.claim(batch)

    def reclaim(self, orphans: Sequence[Orphan], epoch: int) -> list[Fire | None]:  # noqa: ARG002
        return [None for _ in orphans]

    def give_back(self, fires: Sequence[Fire]) -> None:
        """A fire that did not start is not remembered."""

    def disown(self, batch: Batch) -> None:
        """What was not answered was not granted."""

    def finish(self, results: Sequence[Result], max_failures: Mapping[str, int]) -> list[AutoDisabled]:
        switched_off = []
        with self._lock:
            for job_id, (afresh, failures, reason) in failure_streaks(results).items():
                count = failures if afresh else self._failures.get(job_id, 0) + failures
                self._failures[job_id] = count
                if failures and count >= max_failures[job_id] and job_id not in self._off:
                    self._off[job_id] = f"scheduler: {reason}"
                    switched_off.append(AutoDisabled(job_id, count, reason))
            for result in results:
                if self._manual.get(result.fire.job_id) == result.fire:
                    del self._manual[result.fire.job_id]
        return switched_off

    def beat(self, active: bool) -> Beat:  # noqa: ARG002
        return Beat()

    def orphans(self, dead_after: timedelta) -> list[Orphan]:  # noqa: ARG002
        return []

    def interrupt(self, orphans: Sequence[Orphan]) -> list[Orphan]:  # noqa: ARG002
        return []

    def expire(self, orphans: Sequence[Orphan]) -> None:
        """There are no orphans in one process."""

    def forgotten(self, known: Sequence[Fire], older_than: timedelta) -> list[Fire]:  # noqa: ARG002
        return []

    def prune(self, retention: timedelta, batch: int) -> int:  # noqa: ARG002
        return 0

    def run_now(self, job: Job, due: datetime, origin: str) -> RunNow:
        with self._lock:
            if job.id in self._off:
                return RunNow(reason="disabled")
            if job.id in self._manual:
                return RunNow(
                    reason="already_running", owner="this process", started_at=self._manual[job.id].due
                )
            fire = self._manual[job.id] = Fire(due, job.id, origin=origin)
        return RunNow(fire=fire)

    def switch(self, job_id: str, enabled: bool, who: str, reason: str, now: datetime) -> bool:  # noqa: ARG002
        with self._lock:
            if enabled == (job_id not in self._off):
                return False
            if enabled:
                del self._off[job_id]
                self._failures[job_id] = 0
            else:
                self._off[job_id] = f"{who}: {reason}"
        return True

    def other_sets(self) -> Sequence[tuple[str, str, int]]:
        return ()

    def disabled(self) -> Mapping[str, str]:
        with self._lock:
            return dict(self._off)

    def close(self) -> None:
        """Nothing to close."""
