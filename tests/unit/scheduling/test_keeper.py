"""The keeper: what becomes of orphans, and that nothing is lost while the store is away."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from argus_sched.clock import ManualClock
from argus_sched.due_times import every
from argus_sched.errors import ClaimStoreError, SchemaError
from argus_sched.scheduling.auto_disable import AutoDisable, failure_streaks
from argus_sched.scheduling.claims import AutoDisabled, Beat, Orphan, Outcome, Result
from argus_sched.scheduling.events import Events
from argus_sched.scheduling.job import Fire, Job, JobRegistry, declare
from argus_sched.scheduling.keeper import Keeper, Pace, sort_orphans
from argus_sched.scheduling.metrics import Metrics
from argus_sched.scheduling.pool import Pool
from argus_sched.scheduling.report import Report
from argus_sched.scheduling.runs import Runs
from argus_sched.scheduling.unclaimed import Unclaimed

T = datetime(2026, 3, 14, 10, tzinfo=UTC)


def registry() -> JobRegistry:
    found = JobRegistry()
    for job_id, policy in (("once", "at_most_once"), ("again", "at_least_once")):
        found.add(declare(lambda: None, every(minutes=1), id=job_id, on_interrupted=policy, now=T))
    return found


def orphan(job_id: str, dead: bool, minutes_ago: float = 1) -> Orphan:
    due = T - timedelta(minutes=minutes_ago)
    return Orphan(Fire(due, job_id), "w", dead, due)


@pytest.mark.parametrize(
    ("one", "becomes"),
    [
        (orphan("once", dead=True), "interrupted"),
        (orphan("again", dead=True), "again"),
        # How old it is does not matter to a run that has begun: its job wants it run.
        (orphan("again", dead=True, minutes_ago=60), "again"),
        (orphan("once", dead=False), "again"),
        (orphan("once", dead=False, minutes_ago=60), "expired"),
        (orphan("unknown", dead=True), None),
    ],
)
def test_what_becomes_of_an_orphan(one: Orphan, becomes: str | None) -> None:
    found = sort_orphans([one], registry(), T)
    places = {name for name in ("interrupted", "expired", "again") if getattr(found, name)}
    assert places == ({becomes} if becomes else set())


class Store(Unclaimed):
    """A store that may be away, and remembers what the keeper told it."""

    def __init__(self) -> None:
        super().__init__()
        self.away = False
        self.trouble: Exception = ClaimStoreError("away")
        self.calls: list[str] = []
        self.lost: list[Orphan] = []
        self.unknown: list[Fire] = []

    def _call(self, name: str) -> None:
        if self.away:
            raise self.trouble
        self.calls.append(name)

    def beat(self, active: bool) -> Beat:
        self._call("beat")
        return Beat(0.25)

    def finish(self, results: Any, max_failures: Any) -> list[AutoDisabled]:
        self._call(f"finish {len(results)}")
        return super().finish(results, max_failures)

    def give_back(self, fires: Any) -> None:
        self._call(f"give_back {len(fires)}")

    def orphans(self, dead_after: timedelta) -> list[Orphan]:
        self._call("orphans")
        return self.lost

    def interrupt(self, orphans: Any) -> list[Orphan]:
        self._call("interrupt")
        return list(orphans)

    def expire(self, orphans: Any) -> None:
        self._call("expire")

    def forgotten(self, known: Any, older_than: timedelta) -> list[Fire]:
        self._call("forgotten")
        return [fire for fire in self.unknown if fire not in known]

    def prune(self, retention: timedelta, batch: int) -> int:
        self._call("prune")
        return 0


class Stage:
    def __init__(self, alert: Any = None, listener: Any = None) -> None:
        self.clock = ManualClock(T)
        self.store = Store()
        self.metrics = Metrics()
        self.leads = True
        self.offered: list[Orphan] = []
        self.doubted: list[Fire] = []
        self.error: Exception | None = None
        jobs = registry()
        report = Report(Events(listener), self.metrics)
        self.runs = Runs(Pool(2), lambda *_: self.error, lambda _: True, report, self.clock)
        self.jobs: dict[str, Job] = {job.id: job for job in jobs}
        self.keeper = Keeper(
            jobs,
            self.store,
            self.runs,
            AutoDisable(jobs, alert),
            report,
            self.clock,
            Pace(dead_after=6, beat=1.5),
            max_failures=lambda _: 3,
            retention=timedelta(days=30),
            leads=lambda: self.leads,
            offer=self.offered.extend,
            in_doubt=lambda: self.doubted,
        )

    def run(self, job_id: str = "once", minute: int = 0) -> None:
        self.runs.start(self.jobs[job_id], Fire(T + timedelta(minutes=minute), job_id))
        assert self.runs.wait(30)


def test_a_leader_beats_sweeps_and_audits_at_its_pace() -> None:
    stage = Stage()
    for _ in range(7):
        stage.keeper.run_once()
        stage.clock.advance(1)
    calls = stage.store.calls
    assert (calls.count("beat"), calls.count("orphans"), calls.count("forgotten")) == (4, 4, 2)


def test_an_idle_standby_asks_next_to_nothing() -> None:
    stage = Stage()
    stage.leads = False
    for _ in range(60):
        stage.keeper.run_once()
        stage.clock.advance(1)
    assert stage.store.calls == ["beat"]


def test_ends_wait_while_the_store_is_away_and_are_recorded_once() -> None:
    stage = Stage()
    stage.keeper.run_once()
    stage.store.away = True
    stage.run(minute=1)
    stage.runs.refuse(Fire(T, "again"))
    assert 0 < stage.keeper.run_once() <= 2
    stage.run(minute=2)
    stage.keeper.run_once()
    stage.store.away = False
    stage.store.calls.clear()
    stage.keeper.run_once()
    stage.keeper.run_once()
    assert [call for call in stage.store.calls if call[0] in "fg" and call != "forgotten"] == [
        "give_back 1",
        "finish 2",
    ]


@pytest.mark.parametrize("trouble", [SchemaError("a table is missing"), ValueError("not text")])
def test_an_end_that_cannot_be_recorded_is_not_forgotten(trouble: Exception) -> None:
    stage = Stage()
    stage.store.away, stage.store.trouble = True, trouble
    stage.run()
    with pytest.raises(type(trouble)):
        stage.keeper.run_once()
    assert stage.runs.known() == [Fire(T, "once")]
    stage.runs.refuse(Fire(T, "again"))
    with pytest.raises(type(trouble)):
        stage.keeper.run_once()
    assert len(stage.runs.known()) == 2


def test_a_store_that_is_away_for_a_minute_is_told_once() -> None:
    told: list[str] = []
    stage = Stage(listener=lambda event, _: told.append(event))
    stage.store.away = True
    for _ in range(60):
        stage.clock.advance(stage.keeper.run_once())
    assert told == ["store_away"]


def test_orphans_are_recorded_or_offered() -> None:
    stage = Stage()
    stage.store.lost = [orphan("once", dead=True), orphan("again", dead=True)]
    stage.keeper.run_once()
    assert stage.metrics.interrupted == 1
    assert [one.fire.job_id for one in stage.offered] == ["again"]


def test_a_given_back_fire_that_grew_too_old_is_missed_and_counted() -> None:
    stage = Stage()
    stage.store.lost = [orphan("once", dead=False, minutes_ago=60)]
    stage.keeper.run_once()
    assert "expire" in stage.store.calls
    assert +stage.metrics.dues_missed == {"expired": 1}


def test_a_claim_whose_answer_never_came_is_given_back() -> None:
    stage = Stage()
    stage.store.unknown = [Fire(T, "once")]
    stage.keeper.run_once()
    assert stage.runs.take_refused() == [Fire(T, "once")]


def test_a_claim_that_is_under_way_is_not_forgotten() -> None:
    stage = Stage()
    stage.store.unknown = stage.doubted = [Fire(T, "once")]
    stage.keeper.run_once()
    assert stage.runs.take_refused() == []


def test_a_job_that_fails_too_often_is_told_about_once(caplog: pytest.LogCaptureFixture) -> None:
    alerts: list[tuple[str, int]] = []

    def alert(job: Job, disabled: AutoDisabled) -> None:
        alerts.append((job.id, disabled.failures))
        raise ConnectionError("the mail server is away")

    stage = Stage(alert)
    stage.error = ValueError("no")
    for minute in range(5):
        stage.run(minute=minute)
        stage.keeper.run_once()
    assert alerts == [("once", 3)]
    assert 'Job "once" (id=once) auto-disabled after 3 failures in a row: ValueError: no' in caplog.text
    assert "the mail server is away" in caplog.text


def end(job_id: str, outcome: Outcome) -> Result:
    return Result(Fire(T, job_id), outcome, T, T, "" if outcome is Outcome.SUCCESS else str(outcome))


@pytest.mark.parametrize(
    ("ends", "streak"),
    [
        ([Outcome.SUCCESS], (True, 0, "")),
        ([Outcome.ERROR], (False, 1, "error")),
        ([Outcome.ERROR, Outcome.TARGET_MISSING], (False, 2, "target_missing")),
        ([Outcome.ERROR, Outcome.SUCCESS], (True, 0, "")),
        ([Outcome.ERROR, Outcome.SUCCESS, Outcome.ERROR], (True, 1, "error")),
        ([Outcome.SUCCESS, Outcome.ERROR, Outcome.ERROR], (True, 2, "error")),
    ],
)
def test_failures_in_a_row(ends: list[Outcome], streak: tuple[bool, int, str]) -> None:
    results = [end("a", outcome) for outcome in ends] + [end("b", Outcome.SUCCESS)]
    assert failure_streaks(results) == {"a": streak, "b": (True, 0, "")}


def test_the_pace_gives_a_worker_four_beats_before_it_may_count_as_dead() -> None:
    pace = Pace.of(3.0)
    assert (pace.dead_after, pace.beat) == (6.0, 1.5)
