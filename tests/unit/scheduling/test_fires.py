"""Rounds of the firing service over a store that answers as told."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from argus_sched.clock import ManualClock
from argus_sched.due_times import every
from argus_sched.errors import ClaimStoreError
from argus_sched.scheduling.claims import (
    Batch,
    Orphan,
    Outcome,
    OutcomeUnknownError,
    TermView,
    Verdict,
)
from argus_sched.scheduling.events import Events
from argus_sched.scheduling.fires import Fires
from argus_sched.scheduling.job import Fire, Job, JobRegistry, declare
from argus_sched.scheduling.metrics import Metrics
from argus_sched.scheduling.pool import Pool
from argus_sched.scheduling.report import Report
from argus_sched.scheduling.runs import Body, Runs
from argus_sched.scheduling.unclaimed import Unclaimed

T = datetime(2026, 3, 14, 10, tzinfo=UTC)


class Answers(Unclaimed):
    """A store whose answers to claims are scripted, and which keeps what it was asked."""

    def __init__(self, *answers: Any) -> None:
        super().__init__()
        self.answers = list(answers)
        self.batches: list[Batch] = []
        self.behind: dict[str, datetime] = {}
        self.taken: list[Orphan] = []
        self.disowned: list[Batch] = []
        self.meanwhile: Callable[[], None] = lambda: None  # what happens while a claim is under way

    def begin_term(self, epoch: int, jobs: Sequence[Job], schedule_hash: str, now: datetime) -> TermView:
        return TermView(self.behind)

    def claim(self, batch: Batch) -> list[Verdict]:
        self.batches.append(batch)
        self.meanwhile()
        answer = self.answers.pop(0) if self.answers else Verdict.WON
        if isinstance(answer, Exception):
            raise answer
        return [answer for _ in batch.wants]

    def disown(self, batch: Batch) -> None:
        self.disowned.append(batch)

    def reclaim(self, orphans: Sequence[Orphan], epoch: int) -> list[Fire | None]:
        self.taken += orphans
        return [Fire(o.fire.due, o.fire.job_id, epoch, o.fire.attempt + 1) for o in orphans]

    def wanted(self) -> list[tuple[str, float, str]]:
        """What was claimed: job, minutes after T, outcome."""
        return [
            (want.job_id, (want.due - T) / timedelta(minutes=1), str(want.outcome))
            for batch in self.batches
            for want in batch.wants
        ]


class Stage:
    """A firing service whose bodies end when `let_go` says so."""

    def __init__(self, store: Answers, jobs: Iterable[Job], *, slots: int = 4) -> None:
        self.clock = ManualClock(T)
        self.trusted = True
        self.ran: list[tuple[str, datetime]] = []
        self.skipped: list[str] = []
        self.fenced = 0
        self.metrics = Metrics()
        self.hold = threading.Event()
        self.hold.set()
        registry = JobRegistry()
        for job in jobs:
            registry.add(job)
        report = Report(Events(), self.metrics)
        self.runs = Runs(Pool(slots), self._execute, lambda _: self.trusted, report, self.clock)
        self.fires = Fires(
            registry,
            store,
            self.runs,
            report,
            self.clock,
            trusted=lambda: self.trusted,
            say_skipped=self.skipped.append,
            on_fenced=self._on_fenced,
            instance="me",
            born=T,
        )

    def _execute(self, job: Job, body: Body, due: datetime) -> None:
        self.ran.append((job.id, due))
        self.hold.wait(30)

    def _on_fenced(self) -> None:
        self.fenced += 1

    def round(self, minute: float, *due: str) -> None:
        """At `minute` after T the engine signals `due`; one round, and its runs end unless held."""
        self.clock.advance(T + timedelta(minutes=minute) - self.clock.now())
        for job_id in due:
            self.fires.due(job_id)
        self.fires.run_once()
        if self.hold.is_set():
            assert self.runs.wait(30)

    def minutes(self) -> list[float]:
        return sorted((due - T) / timedelta(minutes=1) for _, due in self.ran)


def job(job_id: str = "a", **options: Any) -> Job:
    return declare(lambda: None, every(minutes=1), id=job_id, now=T, **options)


def test_nothing_fires_while_the_gate_is_closed() -> None:
    store = Answers()
    stage = Stage(store, [job()])
    stage.round(1, "a")
    stage.fires.begin(1)
    stage.round(1.5)
    assert store.wanted() == []


def test_a_due_job_runs_once_however_often_it_is_signalled() -> None:
    stage = Stage(Answers(), [job()])
    stage.fires.begin(1)
    stage.round(1, "a", "a")
    stage.round(1, "a")
    assert stage.minutes() == [1]


def test_the_gap_since_the_watermark_is_caught_up() -> None:
    store = Answers()
    store.behind = {"a": T - timedelta(minutes=5), "gone": T}
    stage = Stage(store, [job(catch_up="all"), job("b")])
    stage.fires.begin(2)
    for _ in range(6):
        stage.round(0.1)
    assert stage.minutes() == [-4, -3, -2, -1, 0]
    assert {batch.epoch for batch in store.batches} == {2}


def test_with_latest_one_run_answers_for_the_gap() -> None:
    store = Answers()
    store.behind = {"a": T - timedelta(minutes=5)}
    stage = Stage(store, [job()])
    stage.fires.begin(1)
    stage.round(0.1)
    assert stage.minutes() == [0]
    assert stage.metrics.dues_missed["coalesced"] == 4


def test_with_skip_the_gap_is_given_up_on_record() -> None:
    store = Answers()
    store.behind = {"a": T - timedelta(minutes=5)}
    stage = Stage(store, [job(catch_up="skip")])
    stage.fires.begin(1)
    stage.round(0.1)
    stage.round(1, "a")
    assert store.wanted() == [("a", 0, "missed"), ("a", 1, "running")]
    assert stage.metrics.dues_missed["skipped"] == 5
    assert stage.minutes() == [1]


def test_a_lost_claim_does_not_run_and_is_no_error() -> None:
    stage = Stage(Answers(Verdict.LOST), [job()])
    stage.fires.begin(1)
    stage.round(1, "a")
    stage.round(2, "a")
    assert stage.minutes() == [2]
    assert stage.metrics.claims == {"won": 1, "lost": 1, "unknown": 0}


def test_a_store_that_is_away_runs_nothing_and_the_due_time_waits() -> None:
    away = ClaimStoreError("away")
    stage = Stage(Answers(away, away), [job()])
    stage.fires.begin(1)
    stage.round(1, "a")
    stage.round(1.1)
    assert stage.ran == []
    assert stage.fires.problem == "away"
    stage.round(1.2)
    assert stage.minutes() == [1]
    assert stage.fires.problem == ""


def test_an_unknown_outcome_is_read_again_with_the_same_token_before_anything_runs() -> None:
    store = Answers(OutcomeUnknownError("broke"), Verdict.WON)
    stage = Stage(store, [job(), job("b")])
    stage.fires.begin(1)
    stage.round(1, "a")
    assert stage.ran == []
    assert [fire.key for fire in stage.fires.in_doubt()] == [("a", T + timedelta(minutes=1), "schedule")]
    stage.round(1.1, "b")
    assert stage.fires.in_doubt() == []
    first, again, other = store.batches
    assert first == again
    assert [want.job_id for want in other.wants] == ["b"]
    assert sorted(name for name, _ in stage.ran) == ["a", "b"]
    assert stage.metrics.claims["unknown"] == 1


@pytest.mark.parametrize("again", [False, True])
def test_a_doubt_from_an_earlier_reign_is_given_back_before_anything_else(again: bool) -> None:
    store = Answers(OutcomeUnknownError("broke"))
    stage = Stage(store, [job()])
    stage.fires.begin(1)
    stage.round(1, "a")
    stage.fires.end()
    if again:
        stage.fires.begin(2)
    stage.round(1.1)
    assert stage.ran == []
    assert store.disowned == store.batches
    assert len(store.batches) == 1
    assert stage.fires.in_doubt() == []


def test_a_definite_refusal_leaves_no_doubt() -> None:
    stage = Stage(Answers(ClaimStoreError("deadlock")), [job()])
    stage.fires.begin(1)
    stage.round(1, "a")
    assert stage.fires.in_doubt() == []


def test_a_fenced_leader_claims_nothing_more() -> None:
    store = Answers(Verdict.FENCED)
    stage = Stage(store, [job()])
    stage.fires.begin(1)
    stage.round(1, "a")
    stage.round(2, "a")
    assert stage.ran == []
    assert stage.fenced == 1
    assert len(store.batches) == 1
    assert not stage.fires.firing


@pytest.mark.parametrize("next_epoch", [None, 3])
def test_a_refusal_that_comes_after_its_reign_was_over_ends_no_other(next_epoch: int | None) -> None:
    store = Answers(Verdict.FENCED)
    stage = Stage(store, [job()])
    stage.fires.begin(1)

    def turn() -> None:
        stage.fires.end()
        if next_epoch is not None:
            stage.fires.begin(next_epoch)

    store.meanwhile = turn
    stage.round(1, "a")
    assert stage.fenced == 0
    stage.round(1.5)
    assert stage.fires.firing is (next_epoch is not None)


def test_nothing_is_claimed_without_trust() -> None:
    store = Answers()
    stage = Stage(store, [job()])
    stage.fires.begin(1)
    stage.trusted = False
    stage.round(1, "a")
    assert store.batches == []
    stage.trusted = True
    stage.round(1.2)
    assert stage.minutes() == [1]


def test_a_claimed_fire_is_given_back_when_trust_ran_out_before_its_body() -> None:
    store = Answers()
    stage = Stage(store, [job()])
    stage.fires.begin(1)

    def lose_trust(batch: Batch) -> list[Verdict]:
        stage.trusted = False
        return [Verdict.WON for _ in batch.wants]

    store.claim = lose_trust  # type: ignore[method-assign]  # the trust ends between claim and body
    stage.round(1, "a")
    assert stage.ran == []
    assert [fire.due for fire in stage.runs.take_refused()] == [T + timedelta(minutes=1)]
    assert stage.runs.take_results() == []


def test_a_disabled_job_does_not_run_and_goes_on_from_then() -> None:
    stage = Stage(Answers(Verdict.DISABLED, Verdict.DISABLED), [job()])
    stage.fires.begin(1)
    stage.round(1, "a")
    stage.round(2, "a")
    stage.round(3, "a")
    assert stage.minutes() == [3]
    assert stage.metrics.dues_missed.total() == 0


def test_an_overlap_here_or_elsewhere_is_skipped_and_said() -> None:
    store = Answers(Verdict.WON, Verdict.WON, Verdict.OVERLAP)
    stage = Stage(store, [job()])
    stage.fires.begin(1)
    stage.hold.clear()
    stage.round(1, "a")
    stage.round(2, "a")
    stage.hold.set()
    assert stage.runs.wait(30)
    stage.round(3, "a")
    assert store.wanted() == [
        ("a", 1, "running"),
        ("a", 2, str(Outcome.SKIPPED_OVERLAP)),
        ("a", 3, "running"),
    ]
    assert stage.skipped == ["a", "a"]
    assert stage.metrics.skipped_overlap == 2


def test_a_due_time_that_must_wait_for_another_worker_is_asked_for_again() -> None:
    stage = Stage(Answers(Verdict.WAIT, Verdict.WAIT), [job(catch_up="all")])
    stage.fires.begin(1)
    stage.round(1, "a")
    stage.round(1.1)
    assert stage.ran == []
    stage.round(1.2)
    assert stage.minutes() == [1]


def test_no_more_is_claimed_than_there_are_threads() -> None:
    store = Answers()
    stage = Stage(store, [job(name) for name in "abcdef"], slots=2)
    stage.fires.begin(1)
    stage.hold.clear()
    stage.round(1, *"abcdef")
    assert [len(batch.wants) for batch in store.batches] == [2]
    stage.hold.set()
    assert stage.runs.wait(30)
    for _ in range(3):
        stage.round(1.1)
    assert sorted(name for name, _ in stage.ran) == list("abcdef")


def test_an_orphan_is_taken_over_with_the_next_attempt() -> None:
    store = Answers()
    stage = Stage(store, [job()])
    stage.fires.begin(3)
    orphan = Orphan(Fire(T - timedelta(minutes=1), "a", 2, 1), "dead", dead=True, claimed_at=T)
    stage.fires.offer([orphan, orphan])
    stage.round(0.1)
    stage.round(0.2)
    assert store.taken == [orphan]
    assert stage.minutes() == [-1]


def test_the_first_run_after_the_start_is_outside_the_schedule() -> None:
    store = Answers()
    stage = Stage(store, [job(first_run_after=timedelta(seconds=30))])
    stage.fires.begin(1)
    stage.round(0.4)
    stage.round(0.6)
    stage.round(0.7)
    assert store.wanted() == [("a", 0.5, "running")]
    assert store.batches[0].wants[0].origin == "start:me"


def test_the_gate_waits_for_the_deferral() -> None:
    stage = Stage(Answers(), [job()])
    stage.fires.begin(1, deferral=90)
    stage.round(1, "a")
    assert stage.ran == []
    stage.round(2, "a")
    assert stage.minutes() == [2]


def test_jitter_delays_the_run_and_leaves_the_due_time_alone() -> None:
    one = job(jitter=timedelta(seconds=40))
    delay = one.delay(T + timedelta(minutes=1)) / timedelta(minutes=1)
    assert delay > 0
    stage = Stage(Answers(), [one])
    stage.fires.begin(1)
    stage.round(1 + delay / 2, "a")
    assert stage.ran == []
    stage.round(1 + delay, "a")
    assert stage.minutes() == [1]


def test_a_job_declared_later_is_made_known_to_the_store() -> None:
    store = Answers()
    stage = Stage(store, [job()])
    stage.fires.begin(1)
    stage.round(0.5)
    known: list[int] = []
    store.begin_term = lambda epoch, jobs, *_: known.append(len(jobs)) or TermView()  # type: ignore[method-assign, func-returns-value, assignment, misc]  # keeps how many
    stage.fires._registry.add(job("b"))
    stage.round(1, "a", "b")
    assert known == [2]
    assert len(stage.ran) == 2


@pytest.mark.parametrize("error", [ValueError("boom"), KeyError("x")])
def test_a_body_that_raises_is_a_result_not_a_crash(error: Exception) -> None:
    stage = Stage(Answers(), [job()])
    stage.runs._execute = lambda *_: error
    stage.fires.begin(1)
    stage.round(1, "a")
    (result,) = stage.runs.take_results()
    assert result.outcome is Outcome.ERROR
    assert result.error == f"{type(error).__name__}: {error}"


def test_jobs_that_wait_for_a_thread_for_long_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage(Answers(), [job(), job("b")], slots=1)
    stage.fires.begin(1)
    stage.hold.clear()
    stage.round(1, "a")
    for minute in (2, 3, 4):
        stage.round(minute, "b")
    assert "all 1 job threads have been busy" in stage.fires.problem
    assert caplog.text.count("due jobs wait") == 1
    stage.hold.set()
    assert stage.runs.wait(30)
    stage.round(4.5)
    assert stage.fires.problem == ""
