"""The transcript behind one verdict: what it says of a container that is gone, and of a lock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from argus_sched import due_times
from argus_sched.agent.check import PassReport, Result
from argus_sched.agent.explain import explain
from argus_sched.agent.judging.evidence import Evidence
from argus_sched.agent.judging.job_case import Sight
from argus_sched.agent.kinds.scheduler_jobs import LogLook
from argus_sched.agent.logevents import Container
from argus_sched.agent.packs import JobsCheck, JobSpec
from argus_sched.agent.status import Phase, Status

NOW = datetime(2026, 3, 14, 12, tzinfo=UTC)


def transcript(result: Result, look: LogLook | None) -> str:
    return explain(PassReport(NOW, (result,), (), complete=True, seconds=0.1), result, look)


@pytest.mark.parametrize(
    ("running", "words"),
    [
        (True, "web: running since 2026-03-14 09:00:00Z"),
        (False, "web: not running, last started 2026-03-14 09:00:00Z"),
    ],
)
def test_when_a_container_began_is_not_told_as_when_it_ended(running: bool, words: str) -> None:
    hour = timedelta(hours=1)
    job = JobSpec("sync", "Sync keys", due_times.every(hours=1), hour, hour)
    sight = Sight(NOW, (Container("web", "c0ffee", "web", NOW - 3 * hour, running),))
    look = LogLook("labs", (JobsCheck("scheduler_jobs", (job,)),), Evidence(), sight, ())
    result = Result("labs", "scheduler_jobs", "labs/sync", Status.CRIT, Phase.STALE, "no run for 3h")
    assert words in transcript(result, look)


def test_what_was_seen_of_a_lock_is_in_words() -> None:
    details = {"holder_pid": None, "holder_idle": False, "holder_servers": [], "halves": [0, 5]}
    result = Result(
        "labs", "scheduler_lock", "labs/lock", Status.CRIT, Phase.UNHELD, "no holder", details=details
    )
    shown = transcript(result, None)
    for line in ("holder_pid: none", "holder_idle: no", "holder_servers: none", "halves: 0, 5"):
        assert f"  {line}\n" in shown
