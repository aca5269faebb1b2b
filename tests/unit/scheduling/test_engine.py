"""The engine: APScheduler's own lines, its wake-ups, and what happens when it breaks."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from argus_sched.clock import Clock, ManualClock, SystemClock
from argus_sched.due_times import every, once
from argus_sched.scheduling.apscheduler_engine import RUN_LOGGER, Engine, WakeUps, wake_after
from argus_sched.scheduling.job import Job, declare

T = datetime(2026, 3, 14, 10, tzinfo=UTC)
LINE = re.compile(
    r'Running job "(?P<name>.*) \(trigger: (?P<trigger>.*), next run at: (?P<next>[^)]*)\)" '
    r"\(scheduled at (?P<at>[^)]*)\)"
)


def until(probe: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 30
    while not probe():
        assert time.monotonic() < deadline
        time.sleep(0.01)


class Bench:
    """An engine and what it signalled."""

    def __init__(self, clock: Clock) -> None:
        self.signals: list[str] = []
        self.broken: list[tuple[str, str]] = []
        self.engine = Engine(self.signals.append, lambda *what: self.broken.append(what), clock)


@pytest.fixture
def bench() -> Iterator[Bench]:
    one = Bench(SystemClock())
    yield one
    one.engine.stop()


def job(job_id: str = "a", trigger: Any = None, **options: Any) -> Job:
    return declare(lambda: None, trigger or every(minutes=15), id=job_id, now=T, **options)


def test_a_run_prints_apschedulers_own_line(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, RUN_LOGGER)
    one = job(name='Say "hello" (trigger: fake) → 100 %')
    bench.engine.start([one])
    assert bench.engine.execute(one, lambda: 7, T) is None
    first, second = [record.getMessage() for record in caplog.records if record.name == RUN_LOGGER]
    found = LINE.fullmatch(first)
    assert found is not None
    assert found["name"] == one.name
    assert found["trigger"] == "interval[0:15:00]"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", found["next"])
    assert found["at"] == "2026-03-14 10:00:00+00:00"
    assert second.endswith("executed successfully")


def test_a_body_that_raises_is_apschedulers_line_too(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    one, error = job(), ValueError("boom")

    def body() -> None:
        raise error

    bench.engine.start([one])
    assert bench.engine.execute(one, body, T) is error
    assert re.search(r'Job "a \(trigger: .*\)" raised an exception', caplog.text)


def test_the_skip_line_is_apschedulers(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    one = job()
    bench.engine.start([one])
    bench.engine.say_skipped(one)
    text = r'Execution of job "a \(trigger: .*\)" skipped: maximum number of running instances reached \(1\)'
    assert re.search(text, caplog.text)


def test_due_jobs_are_signalled_not_run(bench: Bench) -> None:
    bench.engine.start([job("fast", every(seconds=0.05)), job("rare", every(days=400))])
    until(lambda: len(bench.signals) >= 3)
    assert set(bench.signals) == {"fast"}


def test_a_job_declared_later_is_signalled_too(bench: Bench) -> None:
    bench.engine.start([])
    bench.engine.add(job("late", every(seconds=0.05)))
    until(lambda: "late" in bench.signals)


def test_a_trigger_that_stands_still_costs_its_job_and_no_other(bench: Bench) -> None:
    class Stuck:
        def next_after(self, instant: datetime) -> datetime:
            return datetime(2017, 10, 29, 1, 30, tzinfo=UTC)

        latest_at_or_before = next_after

        def count_between(self, after: datetime, until: datetime) -> int:
            return 0

        def __str__(self) -> str:
            return "stuck"

    class Raising(Stuck):
        def next_after(self, instant: datetime) -> datetime:
            raise OverflowError("no such year")

    one = job("stuck", every(minutes=1))
    bench.engine.start([job("fast", every(seconds=0.05))])
    for name, trigger in (("stuck", Stuck()), ("raising", Raising())):
        object.__setattr__(one, "trigger", trigger)
        wake_ups = WakeUps(one, lambda *what: bench.broken.append(what))
        assert wake_ups.get_next_fire_time(None, T) is None, name
    assert [reason.split(":")[0].split(" from")[0] for _, reason in bench.broken] == [
        "its trigger stuck does not move on",
        "its next due time cannot be computed",
    ]
    until(lambda: bench.signals)


def test_a_signal_that_fails_is_apschedulers_error_and_ends_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(_: str) -> None:
        raise RuntimeError("no thread takes it")

    engine = Engine(fail, lambda *_: None, SystemClock())
    engine.start([job("fast", every(seconds=0.05))])
    until(lambda: 'Error submitting job "fast' in caplog.text)
    assert engine.problem() == ""
    engine.stop()


def test_health_is_the_thread_and_its_last_turn_not_a_flag(bench: Bench) -> None:
    assert bench.engine.problem() == "the engine is not running"
    bench.engine.start([job()])
    assert bench.engine.problem() == ""
    assert "has not looked" in bench.engine.problem(patience=-1)
    bench.engine.stop()
    assert bench.engine.problem() == "the engine is not running"


def test_a_dead_thread_is_noticed_and_a_fresh_engine_signals_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.engine.start([job("fast", every(seconds=0.05))])
    until(lambda: bench.signals)
    died = threading.Event()
    monkeypatch.setattr(threading, "excepthook", lambda _: died.set())

    def die() -> None:
        raise SystemError("the loop died")

    bench.engine._loop._process_jobs = die  # type: ignore[union-attr]  # the fault
    bench.engine.nudge()
    assert died.wait(30)
    until(lambda: bench.engine.problem() == "APScheduler's thread is not alive")
    bench.signals.clear()
    bench.engine.rebuild([job("fast", every(seconds=0.05))])
    until(lambda: bench.signals)
    assert bench.engine.problem() == ""


def test_a_wake_up_is_always_past_now_however_long_the_gap() -> None:
    wake_ups = WakeUps(job(trigger=every(seconds=1)), lambda *_: None)
    then = datetime(1970, 1, 1, tzinfo=UTC)
    assert wake_ups.get_next_fire_time(then, T) == T + timedelta(seconds=1)
    assert wake_ups.get_next_fire_time(T + timedelta(seconds=5), T) == T + timedelta(seconds=6)
    assert WakeUps(job(trigger=once(T)), lambda *_: None).get_next_fire_time(None, T) is None


def test_with_jitter_the_wake_up_is_late_and_none_is_left_out() -> None:
    one = job(trigger=every(minutes=1), jitter=timedelta(seconds=30))
    instant, found = T, []
    for _ in range(50):
        following = wake_after(one, instant)
        assert following is not None
        found.append(following)
        instant = following
    dues = [T + n * timedelta(minutes=1) for n in range(51)]
    expected = [due + one.delay(due) for due in dues if due + one.delay(due) > T][:50]
    assert found == expected


def test_apscheduler_goes_by_an_injected_clock() -> None:
    class Ahead(SystemClock):
        step = timedelta(0)

        def now(self) -> datetime:
            return super().now() + self.step

    clock = Ahead()
    bench = Bench(clock)
    bench.engine.start([job("hourly", every(hours=1), max_instances=1)])
    before = bench.engine.next_run("hourly")
    assert bench.signals == []
    clock.step = timedelta(hours=2)
    bench.engine.nudge()
    until(lambda: bench.signals)
    until(lambda: bench.engine.next_run("hourly") != before)
    bench.engine.stop()


def test_a_manual_clock_is_read_through_the_zone() -> None:
    bench = Bench(ManualClock(T))
    bench.engine.start([job("hourly", every(hours=1))])
    assert bench.engine.next_run("hourly") == T + timedelta(hours=1)
    bench.engine.stop()
