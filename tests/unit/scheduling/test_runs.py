"""Runs in this process: threads, outcomes, and what is refused."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import Any

import pytest

from argus_sched.clock import ManualClock
from argus_sched.due_times import every
from argus_sched.scheduling.claims import Outcome
from argus_sched.scheduling.events import Events
from argus_sched.scheduling.job import Fire, TargetMissingError, declare
from argus_sched.scheduling.metrics import Metrics
from argus_sched.scheduling.pool import Pool
from argus_sched.scheduling.report import Report
from argus_sched.scheduling.runs import Runs, describe, outcome_of

T = datetime(2026, 3, 14, 10, tzinfo=UTC)
JOB = declare(lambda: None, every(minutes=1), id="a", now=T)


def runs(execute: Any = lambda *_: None, may_start: Any = lambda _: True, size: int = 3) -> Runs:
    return Runs(Pool(size), execute, may_start, Report(Events(), Metrics()), ManualClock(T))


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("raised", "outcome", "text"),
    [
        (None, Outcome.SUCCESS, ""),
        (ValueError("no"), Outcome.ERROR, "ValueError: no"),
        (SystemExit(3), Outcome.ERROR, "SystemExit: 3"),
        (TargetMissingError("gone"), Outcome.TARGET_MISSING, "TargetMissingError: gone"),
        (ValueError("x" * 9000), Outcome.ERROR, ("ValueError: " + "x" * 9000)[:2000]),
        # Postgres takes no NUL in a text.
        (ValueError("a\x00b"), Outcome.ERROR, "ValueError: a\\x00b"),
        (ValueError("a\udcffb"), Outcome.ERROR, "ValueError: a\\udcffb"),
        (MuteError(), Outcome.ERROR, "MuteError: its message cannot be read"),
    ],
)
def test_outcome(raised: BaseException | None, outcome: Outcome, text: str) -> None:
    assert (outcome_of(raised), describe(raised)) == (outcome, text)


def test_slots_are_taken_from_the_claim_to_the_end() -> None:
    hold = threading.Event()
    one = runs(lambda *_: hold.wait(30) and None)
    freed = threading.Event()
    one.on_free = freed.set
    one.start(JOB, Fire(T, "a"))
    assert (one.free, one.running("a"), one.running("b"), one.busy) == (2, 1, 0, True)
    assert one.known() == [Fire(T, "a")]
    assert not one.wait(0.01)
    hold.set()
    assert one.wait(30)
    assert freed.wait(30)
    assert (one.free, one.running("a"), one.busy) == (3, 0, True)
    (result,) = one.take_results()
    assert (result.fire, result.outcome) == (Fire(T, "a"), Outcome.SUCCESS)
    assert not one.busy


def test_results_that_could_not_be_recorded_keep_their_order() -> None:
    one = runs()
    one.start(JOB, Fire(T, "a"))
    assert one.wait(30)
    first = one.take_results()
    one.start(JOB, Fire(T, "a", attempt=2))
    assert one.wait(30)
    one.keep_results(first)
    assert [result.fire.attempt for result in one.take_results()] == [1, 2]


def test_a_run_whose_log_handler_fails_is_an_error_and_not_given_back() -> None:
    def execute(*_: Any) -> None:
        raise OSError("the log is full")

    one = runs(execute)
    one.start(JOB, Fire(T, "a"))
    assert one.wait(30)
    assert one.take_refused() == []
    (result,) = one.take_results()
    assert (result.outcome, result.error) == (Outcome.ERROR, "OSError: the log is full")


def test_a_refused_start_frees_its_slot_and_waits_to_be_given_back() -> None:
    one = runs(may_start=lambda _: False)
    one.start(JOB, Fire(T, "a"))
    assert one.wait(30)
    assert one.take_results() == []
    assert one.known() == [Fire(T, "a")]
    assert one.take_refused() == [Fire(T, "a")]
    assert one.free == 3


def test_a_pool_runs_at_most_its_size_at_a_time_and_all_in_the_end() -> None:
    pool, lock = Pool(3), threading.Lock()
    now, most, done = 0, 0, threading.Semaphore(0)

    def task() -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        threading.Event().wait(0.005)
        with lock:
            now -= 1
        done.release()

    for _ in range(40):
        pool.submit(task)
    for _ in range(40):
        assert done.acquire(timeout=30)
    assert most <= 3
    pool.close()


def test_a_task_that_raises_does_not_cost_its_thread(caplog: pytest.LogCaptureFixture) -> None:
    pool, done = Pool(1), threading.Event()

    def fail() -> None:
        raise ValueError("boom")

    pool.submit(fail)
    pool.submit(done.set)
    assert done.wait(30)
    assert "boom" in caplog.text


def test_a_pool_starts_no_more_threads_than_it_needs() -> None:
    pool, done = Pool(50), threading.Event()
    for _ in range(5):
        done.clear()
        pool.submit(done.set)
        assert done.wait(30)
        until_idle(pool)
    assert pool._started == 1


def until_idle(pool: Pool) -> None:
    assert pool._idle.acquire(timeout=30)
    pool._idle.release()
