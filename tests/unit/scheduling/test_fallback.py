"""Running without a store: never in production, after some patience elsewhere, and never against a leader's gate."""

from __future__ import annotations

import pytest

from argus_sched.clock import ManualClock
from argus_sched.scheduling.claims import ClaimStore
from argus_sched.scheduling.events import Events
from argus_sched.scheduling.fallback import PATIENCE, Fallback
from argus_sched.scheduling.settings import Settings
from argus_sched.scheduling.unclaimed import Unclaimed


class Gate:
    """The gate of the fires, and the store behind it."""

    def __init__(self, store: ClaimStore) -> None:
        self.store, self.calls = store, list[str]()

    def begin(self, epoch: int) -> None:
        self.calls.append(f"begin {epoch}")

    def end(self) -> None:
        self.calls.append("end")


class Stage:
    def __init__(self, environment: str) -> None:
        self.clock, self.store = ManualClock(), Unclaimed()
        self.gate = Gate(self.store)
        settings = Settings(namespace="labs", dsn="x", environment=environment)
        self.fallback = Fallback(settings, self.gate, self.store, self.clock, Events())  # type: ignore[arg-type]  # a gate

    def away(self, seconds: float) -> None:
        self.fallback.away(lambda: self.gate.calls.append("serve"))
        self.clock.advance(seconds)
        self.fallback.away(lambda: self.gate.calls.append("serve"))


def test_production_fails_closed() -> None:
    stage = Stage("production")
    stage.away(3600)
    assert stage.gate.calls == []
    assert not stage.fallback.active


def test_elsewhere_jobs_run_after_some_patience_with_one_warning_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage = Stage("development")
    stage.away(PATIENCE - 1)
    assert stage.gate.calls == []
    for _ in range(13):
        stage.away(10)
    assert stage.gate.calls == ["serve", "begin 0"]
    assert stage.gate.store is not stage.store
    assert caplog.text.count("jobs run unguarded and unclaimed here") == 3


def test_a_store_that_was_back_in_time_was_never_away() -> None:
    stage = Stage("development")
    stage.away(PATIENCE - 1)
    stage.fallback.back()
    stage.away(PATIENCE - 1)
    assert stage.gate.calls == []


def test_the_gate_that_a_leader_opened_is_not_closed_by_the_news_that_the_store_is_back() -> None:
    stage = Stage("development")
    stage.away(PATIENCE)
    stage.gate.calls.clear()
    stage.fallback.back()
    stage.gate.begin(7)
    stage.fallback.back()
    assert stage.gate.calls == ["end", "begin 7"]
    assert stage.gate.store is stage.store
