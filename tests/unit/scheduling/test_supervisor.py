"""The supervisor: it boots however often that takes, and lets another lead when its own parts are stuck."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest

from argus_sched.clock import ManualClock
from argus_sched.due_times import every
from argus_sched.errors import ArgusError, ClaimStoreError, SchemaError
from argus_sched.scheduling.events import Events
from argus_sched.scheduling.job import Job, JobRegistry, declare
from argus_sched.scheduling.metrics import Metrics
from argus_sched.scheduling.settings import Settings
from argus_sched.scheduling.supervisor import STALL, Supervisor
from argus_sched.scheduling.unclaimed import Unclaimed

T = datetime(2026, 3, 14, 10, tzinfo=UTC)


class Store(Unclaimed):
    """A store whose opening fails as told, and whose census can be set."""

    def __init__(self) -> None:
        super().__init__()
        self.errors: list[Exception] = []
        self.others: list[tuple[str, str, int]] = []

    def open(self, jobs: Iterable[Job], schedule_hash: str) -> None:
        if self.errors:
            raise self.errors.pop(0)

    def other_sets(self) -> list[tuple[str, str, int]]:
        return self.others


class EngineDouble:
    """Stands for APScheduler, whose real breakdowns test_engine shows."""

    def __init__(self) -> None:
        self.ills: list[str] = []
        self.calls: list[str] = []
        self.fails = False

    def problem(self) -> str:
        return self.ills[0] if self.ills else ""

    def start(self, jobs: Iterable[Job]) -> None:
        self.calls.append("start")

    def rebuild(self, jobs: Iterable[Job]) -> None:
        self.calls.append("rebuild")
        if self.fails:
            raise RuntimeError("can't start new thread")
        self.ills.clear()

    def nudge(self) -> None:
        self.calls.append("nudge")


class Fallback:
    """Counts how often the store was away and back."""

    active = False

    def __init__(self) -> None:
        self.calls: list[str] = []

    def away(self, serve: Any) -> None:
        self.calls.append("away")

    def back(self) -> None:
        self.calls.append("back")


class Stage:
    def __init__(self, *, empty: bool = False) -> None:
        self.clock, self.store, self.engine, self.fallback = (
            ManualClock(T),
            Store(),
            EngineDouble(),
            Fallback(),
        )
        self.metrics, self.calls = Metrics(), list[str]()
        self.leads, self.round_at = True, self.clock.elapsed()
        registry = JobRegistry()
        if not empty:
            registry.add(declare(lambda: None, every(minutes=1), id="a", name="Job A", now=T))
        self.supervisor = Supervisor(
            Settings(namespace="labs", dsn="x"),
            registry,
            self.store,
            self.engine,  # type: ignore[arg-type]  # a double
            self.fallback,  # type: ignore[arg-type]  # a double
            Events(),
            self.metrics,
            self.clock,
            serve=lambda: self.calls.append("serve"),
            join=lambda: self.calls.append("join"),
            resign=lambda: self.calls.append("resign"),
            leads=lambda: self.leads,
            idle=lambda: not len(registry),
            last_round=lambda: self.round_at,
        )


def test_booting_opens_the_store_before_anything_joins_in() -> None:
    stage = Stage()
    assert stage.supervisor.boot()
    assert stage.calls == ["serve", "join"]
    assert stage.supervisor.booted


@pytest.mark.parametrize(
    ("error", "away"),
    [(ClaimStoreError("away"), True), (SchemaError("no tables"), False), (OSError("no route"), False)],
)
def test_what_is_in_the_way_is_said_once_and_tried_again(
    error: Exception, away: bool, caplog: pytest.LogCaptureFixture
) -> None:
    stage = Stage()
    stage.store.errors = [error, error]
    assert not stage.supervisor.boot()
    assert not stage.supervisor.boot()
    expected = str(error) if isinstance(error, ArgusError) else f"OSError: {error}"
    assert stage.supervisor.problem == expected
    assert caplog.text.count(f"the scheduler is not running: {expected}") == 1
    assert ("away" in stage.fallback.calls) == away
    assert stage.supervisor.boot()
    assert stage.supervisor.problem == ""


def test_an_empty_worker_does_not_even_stand_for_election() -> None:
    stage = Stage(empty=True)
    assert not stage.supervisor.boot()
    assert "must not lead" in stage.supervisor.problem
    assert stage.calls == []


def test_the_engine_is_nudged_each_round_and_replaced_when_it_broke() -> None:
    stage = Stage()
    stage.supervisor.run_once()
    stage.engine.ills = ["APScheduler's thread is not alive"]
    stage.supervisor.run_once()
    assert stage.engine.calls == ["nudge", "nudge", "rebuild"]
    assert stage.calls == []


def test_when_the_engine_cannot_be_replaced_another_worker_should_lead() -> None:
    stage = Stage()
    stage.engine.ills, stage.engine.fails = ["APScheduler's thread is not alive"], True
    stage.supervisor.run_once()
    assert stage.calls == ["resign"]


def test_a_leader_that_fires_nothing_because_it_is_stuck_resigns(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage()
    stage.clock.advance(STALL + 1)
    stage.leads = False
    stage.supervisor.run_once()
    assert stage.calls == []
    stage.leads = True
    stage.supervisor.run_once()
    assert stage.calls == ["resign"]
    assert "the firing thread is stuck" in caplog.text


def test_a_job_that_cannot_be_scheduled_any_more_is_switched_off(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage()
    stage.supervisor.mark_broken("a", "its trigger does not move on")
    stage.supervisor.run_once()
    stage.supervisor.run_once()
    assert stage.store.disabled() == {"a": "scheduler: its trigger does not move on"}
    assert caplog.text.count('Job "Job A" (id=a) disabled by scheduler: its trigger does not move on') == 1
    assert stage.metrics.disabled_jobs == 1


def test_another_set_of_jobs_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage()
    stage.store.others = [("feedfacefeedface", "web-2", 7)]
    for _ in range(3):
        stage.supervisor.run_once()
        stage.clock.advance(61)
    assert caplog.text.count("worker web-2:7 declares another set of jobs (feedfacefeedface)") == 1
