"""Every turn of the election, on a lock that follows a script and a clock that a test moves."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from argus_sched.clock import ManualClock
from argus_sched.errors import LeadershipRefused
from argus_sched.scheduling.elector import Elector
from argus_sched.scheduling.leadership import Cause, Role, Server, Step, Term, Timing
from argus_sched.scheduling.ports import SessionLostError, WaitUnsupportedError
from argus_sched.scheduling.wakeup import WakeUp

TIMING = Timing.default()


class ScriptedLock:
    """A LeaderLock whose answers are attributes; `failures` holds what a method raises, once."""

    backend_pid = 4711

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.supports_lease = True
        self.server: Server | None = Server("7", 1)
        self.leader_free = True
        self.heir_free = True
        self.news = False
        self.epoch = 0
        self.failures: dict[str, Exception] = {}
        self.calls: list[str] = []
        self.seconds = dict.fromkeys(("tick", "promote", "watch"), 0.0)

    def _call(self, name: str) -> None:
        self.calls.append(name)
        self.clock.advance(self.seconds.get(name, 0.0))
        if name in self.failures:
            raise self.failures.pop(name)

    def try_lead(self) -> bool:
        self._call("try_lead")
        return self.leader_free

    def try_heir(self) -> bool:
        self._call("try_heir")
        return self.heir_free

    def wait_to_lead(self, seconds: float, wake: WakeUp) -> bool:
        self._call("wait_to_lead")
        if not self.leader_free:
            self.clock.advance(seconds)
        return self.leader_free

    def promote(self) -> int:
        self._call("promote")
        self.epoch += 1
        return self.epoch

    def tick(self) -> None:
        self._call("tick")

    def keep(self) -> None:
        self._call("keep")

    def watch(self, seconds: float, wake: WakeUp) -> bool:
        self._call("watch")
        if not self.news and not wake.is_set():
            self.clock.advance(seconds)
        news, self.news = self.news, False
        return news

    def release(self) -> None:
        self._call("release")

    def close(self) -> None:
        self.calls.append("close")


class Stage:
    """An elector with its script, its clock and everything it said."""

    def __init__(self, timing: Timing = TIMING, **options: Any) -> None:
        self.clock = ManualClock()
        self.lock = ScriptedLock(self.clock)
        self.turns: list[tuple[str, Any]] = []
        self.events: list[tuple[str, Mapping[str, Any]]] = []
        self.on_promote: Callable[[Term], None] = lambda term: self.turns.append(("promote", term.epoch))
        self.unreachable: Exception | None = None
        self.elector = Elector(
            self._connect,
            timing,
            namespace="labs",
            instance="one",
            on_promote=self._promoted,
            on_demote=lambda term, cause: self.turns.append(("demote", cause)),
            clock=self.clock,
            jitter=lambda: 0.5,
            emit=lambda event, fields: self.events.append((event, fields)),
            **options,
        )

    def _promoted(self, term: Term) -> None:
        self.on_promote(term)

    def _connect(self) -> ScriptedLock:
        if self.unreachable:
            raise self.unreachable
        return self.lock

    def role(self) -> Role:
        return self.elector.role

    def problem(self) -> str:
        return self.elector.problem or ""

    def rounds(self, count: int) -> list[Step]:
        return [self.elector.run_once() for _ in range(count)]

    def as_leader(self) -> Stage:
        self.rounds(1)
        assert self.role() is Role.LEADER
        return self

    def as_heir(self) -> Stage:
        self.lock.leader_free = False
        self.rounds(2)
        assert self.role() is Role.HEIR
        return self

    def as_standby(self) -> Stage:
        self.lock.leader_free = self.lock.heir_free = False
        self.rounds(2)
        assert self.role() is Role.STANDBY
        return self

    def told(self, event: str) -> list[Mapping[str, Any]]:
        return [fields for name, fields in self.events if name == event]


def gone(cause: Cause = Cause.CONNECTION_LOST) -> SessionLostError:
    return SessionLostError(cause, "gone")


# Winning.


def test_a_free_lock_is_won_verified_and_recorded_before_anyone_is_told() -> None:
    stage = Stage().as_leader()
    assert stage.lock.calls == ["try_lead", "tick", "promote"]
    assert stage.turns == [("promote", 1)]
    assert stage.elector.term == Term(1, 1000.0, 4711)
    assert stage.elector.is_trusted()


def test_a_taken_lock_makes_a_standby_and_a_free_heirs_key_the_heir() -> None:
    stage = Stage()
    stage.lock.leader_free = False
    assert stage.rounds(1) == [Step.CONNECT]
    assert stage.role() is Role.STANDBY
    assert stage.rounds(1) == [Step.PROBE]
    assert stage.role() is Role.HEIR
    assert not stage.elector.is_trusted()


def test_the_heir_waits_in_the_queue_without_a_pause_and_leads_when_granted() -> None:
    stage = Stage().as_heir()
    assert stage.rounds(3) == [Step.WAIT] * 3
    stage.lock.leader_free = True
    stage.rounds(1)
    assert stage.role() is Role.LEADER
    assert stage.turns == [("promote", 1)]


def test_a_standby_probes_at_an_even_rate_from_a_moment_drawn_by_chance() -> None:
    stage = Stage().as_standby()
    at = []
    for _ in range(3):
        assert stage.rounds(2) == [Step.WATCH, Step.PROBE]
        at.append(stage.clock.elapsed())
    assert at == [pytest.approx(1000.5), pytest.approx(1001.5), pytest.approx(1002.5)]


def test_news_of_a_released_lock_makes_a_standby_probe_at_once() -> None:
    stage = Stage().as_standby()
    before = stage.clock.elapsed()
    stage.lock.news = stage.lock.heir_free = True
    assert stage.rounds(2) == [Step.WATCH, Step.PROBE]
    assert stage.clock.elapsed() == before
    assert stage.role() is Role.HEIR


def test_without_an_heir_each_standby_probes_the_leaders_lock() -> None:
    stage = Stage(Timing.recipe())
    stage.lock.leader_free = False
    stage.rounds(2)
    stage.lock.leader_free = True
    assert stage.rounds(2) == [Step.WATCH, Step.PROBE]
    assert stage.role() is Role.LEADER
    assert "try_heir" not in stage.lock.calls


def test_where_a_bounded_wait_is_impossible_the_heir_asks_every_quarter_second() -> None:
    stage = Stage().as_heir()
    stage.lock.failures["wait_to_lead"] = WaitUnsupportedError("permission denied for language plpgsql")
    stage.rounds(1)
    started = stage.clock.elapsed()
    assert stage.rounds(4) == [Step.WAIT, Step.WATCH, Step.WAIT, Step.WATCH]
    assert stage.clock.elapsed() - started == pytest.approx(0.5)
    stage.lock.leader_free = True
    stage.rounds(1)
    assert stage.role() is Role.LEADER
    assert len(stage.told("polling")) == 1


# Trust.


def test_trust_is_counted_from_when_the_tick_was_sent() -> None:
    stage = Stage().as_leader()
    stage.lock.seconds["tick"] = 0.3
    assert stage.rounds(2) == [Step.WATCH, Step.TICK]
    sent = 1000.0 + TIMING.tick
    assert stage.clock.elapsed() == pytest.approx(sent + 0.3)
    assert stage.elector.trusted_until == pytest.approx(sent + 0.8 * 3.0)
    assert stage.elector.tick_seconds == pytest.approx(0.3)


def test_trust_runs_out_by_itself_in_a_process_that_was_frozen() -> None:
    stage = Stage().as_leader()
    stage.clock.advance(2.39)
    assert stage.elector.is_trusted()
    stage.clock.advance(0.01)
    assert not stage.elector.is_trusted()
    assert stage.role() is Role.LEADER


def test_after_a_gap_the_first_thing_is_the_tick_and_it_decides() -> None:
    stage = Stage().as_leader()
    stage.clock.advance(10.0)
    assert stage.rounds(1) == [Step.TICK]
    assert stage.elector.is_trusted()
    assert stage.told("gap") == [{"seconds": pytest.approx(9.5)}]
    stage.clock.advance(10.0)
    stage.lock.failures["tick"] = gone(Cause.LEASE_EXPIRED)
    stage.rounds(1)
    assert stage.turns[-1] == ("demote", Cause.LEASE_EXPIRED)


def test_without_ticks_a_leader_believes_for_ever() -> None:
    stage = Stage(tick=False).as_leader()
    stage.clock.advance(1e6)
    assert stage.elector.is_trusted()
    assert stage.elector.trusted_until == math.inf


def test_without_the_watch_the_socket_is_never_looked_at() -> None:
    stage = Stage(watch=False).as_leader()
    assert stage.rounds(2) == [Step.WATCH, Step.TICK]
    assert "watch" not in stage.lock.calls


# Losing.


@pytest.mark.parametrize("method", ["watch", "tick"])
@pytest.mark.parametrize("cause", [Cause.TERMINATED, Cause.TICK_TIMEOUT, Cause.LOCK_LOST, Cause.REPLICA])
def test_a_lost_session_ends_the_term_closes_it_and_connects_anew(method: str, cause: Cause) -> None:
    stage = Stage().as_leader()
    stage.lock.failures[method] = gone(cause)
    stage.rounds(2 if method == "tick" else 1)
    assert stage.turns == [("promote", 1), ("demote", cause)]
    assert stage.role() is Role.STANDBY
    assert stage.elector.term is None
    assert stage.elector.trusted_until == 0.0
    assert stage.lock.calls[-1] == "close"
    assert stage.rounds(2) == [Step.REST, Step.CONNECT]
    assert stage.turns[-1] == ("promote", 2)


def test_the_first_attempt_to_reconnect_comes_within_fifty_milliseconds() -> None:
    stage = Stage().as_leader()
    stage.lock.failures["watch"] = gone()
    stage.rounds(1)
    lost = stage.clock.elapsed()
    stage.rounds(1)
    assert 0.02 <= stage.clock.elapsed() - lost <= 0.05


def test_trust_is_gone_before_the_application_hears_of_the_demotion() -> None:
    stage = Stage().as_leader()
    seen: list[tuple[bool, Role]] = []
    stage.elector._election._on_demote = lambda _term, _cause: seen.append(
        (stage.elector.is_trusted(), stage.role())
    )
    stage.lock.failures["watch"] = gone()
    stage.rounds(1)
    assert seen == [(False, Role.STANDBY)]


def test_a_standby_that_loses_its_session_demotes_nobody() -> None:
    stage = Stage().as_standby()
    stage.lock.failures["watch"] = gone()
    stage.rounds(1)
    assert stage.turns == []
    assert stage.problem() == "gone"


def test_a_session_that_dies_between_the_grant_and_the_record_makes_no_leader() -> None:
    for method in ("tick", "promote"):
        stage = Stage()
        stage.lock.failures[method] = gone()
        stage.rounds(1)
        assert stage.turns == []
        assert stage.role() is Role.STANDBY
        assert stage.lock.calls[-1] == "close"


def test_an_unexpected_error_ends_the_session_and_not_the_thread(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage().as_leader()
    stage.lock.failures["tick"] = ZeroDivisionError("surprise")
    stage.rounds(2)
    assert stage.turns[-1] == ("demote", Cause.ERROR)
    assert stage.problem() == "ZeroDivisionError: surprise"
    assert "surprise" in caplog.text


# Trouble.


def test_an_unreachable_database_is_told_once_and_left_with_the_first_good_round() -> None:
    stage = Stage()
    stage.unreachable = gone()
    stage.rounds(9)
    assert stage.problem() == "gone"
    assert len(stage.told("reconnecting")) == 1
    stage.unreachable = None
    stage.rounds(2)
    assert stage.role() is Role.LEADER
    assert stage.problem() == ""
    assert len(stage.told("recovered")) == 1


def test_a_refusal_is_told_by_its_sentence_and_looked_at_again() -> None:
    stage = Stage()
    stage.unreachable = LeadershipRefused("a replica")
    stage.rounds(1)
    assert stage.problem() == "a replica"
    assert [fields["detail"] for fields in stage.told("refused")] == ["a replica"]
    refused = stage.clock.elapsed()
    stage.unreachable = None
    assert stage.rounds(2) == [Step.REST, Step.CONNECT]
    assert stage.clock.elapsed() - refused <= 1.0
    assert stage.role() is Role.LEADER


def test_a_refused_record_gives_the_lock_back_by_closing() -> None:
    stage = Stage()
    stage.lock.failures["promote"] = LeadershipRefused("the key belongs to namespace 'shop'")
    stage.rounds(1)
    assert stage.turns == []
    assert stage.lock.calls[-1] == "close"


def test_an_old_primary_is_refused_after_its_successor_was_seen() -> None:
    stage = Stage()
    stage.lock.server = Server("7", 2)
    stage.as_leader()
    stage.lock.failures["watch"] = gone()
    stage.lock.server = Server("7", 1)
    stage.rounds(3)
    assert stage.role() is Role.STANDBY
    assert "old primary" in stage.problem()


def test_a_server_without_leases_is_told_once_and_led_by_the_recipe() -> None:
    stage = Stage()
    stage.lock.supports_lease = False
    stage.as_leader()
    assert stage.elector.timing == Timing.recipe()
    stage.lock.failures["watch"] = gone()
    stage.rounds(3)
    assert stage.role() is Role.LEADER
    assert len(stage.told("lease_unavailable")) == 1
    assert stage.elector.trusted_until - stage.clock.elapsed() == pytest.approx(Timing.recipe().trust)


def test_a_start_that_fails_gives_the_lock_to_another_worker_for_a_while() -> None:
    stage = Stage()
    started = stage.on_promote

    def fail(_term: Term) -> None:
        raise ImportError("No module named 'apscheduler'")

    stage.on_promote = fail
    stage.rounds(1)
    assert stage.turns == [("demote", Cause.PROMOTION_FAILED)]
    assert stage.lock.calls[-1] == "release"
    assert "apscheduler" in stage.problem()
    stage.on_promote = started
    while stage.role() is not Role.LEADER:
        stage.rounds(1)
    assert stage.clock.elapsed() - 1000.0 >= 10.0


def test_callbacks_that_raise_stop_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("broken callback")

    stage = Stage()
    stage.elector._election._on_demote = fail
    stage.elector._election._news._emit = fail
    stage.as_leader()
    stage.lock.failures["watch"] = gone()
    stage.rounds(3)
    assert stage.role() is Role.LEADER
    assert "broken callback" in caplog.text


# Leaving.


def test_a_stop_demotes_releases_and_closes_in_this_order() -> None:
    stage = Stage().as_leader()
    assert stage.elector.stop()
    assert stage.turns[-1] == ("demote", Cause.STOPPED)
    assert stage.lock.calls[-2:] == ["release", "close"]
    assert stage.role() is Role.STOPPED


def test_a_stop_whose_release_fails_still_closes() -> None:
    stage = Stage().as_leader()
    stage.lock.failures["release"] = gone()
    assert stage.elector.stop()
    assert stage.lock.calls[-1] == "close"


def test_a_stop_before_any_session_is_clean() -> None:
    assert Stage().elector.stop()


def test_a_wait_that_is_granted_to_a_stopping_heir_promotes_nobody() -> None:
    stage = Stage().as_heir()
    stage.lock.leader_free = True
    grant = stage.lock.wait_to_lead

    def granted_too_late(seconds: float, wake: WakeUp) -> bool:
        stage.elector._election.stopping = True
        return grant(seconds, wake)

    stage.lock.wait_to_lead = granted_too_late  # type: ignore[method-assign]
    assert stage.rounds(2) == [Step.WAIT, Step.STOP]
    assert stage.turns == []
    assert stage.lock.calls[-2:] == ["release", "close"]


def test_resigning_keeps_the_session_alive_and_the_worker_out_for_the_cooldown() -> None:
    stage = Stage().as_leader()
    stage.elector.resign(cooldown=3.0)
    assert stage.rounds(1) == [Step.STEP_DOWN]
    assert stage.turns[-1] == ("demote", Cause.RESIGNED)
    assert stage.lock.calls[-1] == "release"
    steps = [stage.elector.run_once()]
    while stage.role() is Role.STANDBY:
        steps.append(stage.elector.run_once())
    assert steps.count(Step.KEEP) >= 2
    assert stage.clock.elapsed() - 1000.0 >= 3.0


def test_a_worker_that_is_no_candidate_only_keeps_its_session_until_it_stands() -> None:
    stage = Stage(candidate=False)
    assert stage.rounds(4) == [Step.CONNECT, Step.KEEP, Step.WATCH, Step.KEEP]
    assert "try_lead" not in stage.lock.calls
    stage.elector.stand()
    stage.rounds(3)
    assert stage.role() is Role.LEADER


def test_an_heir_that_resigns_lets_another_worker_inherit() -> None:
    stage = Stage().as_heir()
    stage.elector.resign(60.0)
    assert stage.rounds(1) == [Step.STEP_DOWN]
    assert stage.lock.calls[-1] == "release"
    assert stage.role() is Role.STANDBY


# Processes and threads.


def test_another_process_has_no_part_in_the_election(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage().as_leader()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert stage.role() is Role.STOPPED
    assert stage.elector.term is None
    assert not stage.elector.is_trusted()
    assert stage.elector.stop()
    assert "close" not in stage.lock.calls


def test_a_second_start_does_nothing_and_a_start_after_a_stop_begins_afresh() -> None:
    stage = Stage()
    stage.elector.start()
    thread = stage.elector._thread
    stage.elector.start()
    assert stage.elector._thread is thread
    assert stage.elector.stop()
    assert not stage.elector.is_alive()
    stage.elector.start()
    assert stage.elector.is_alive()
    assert stage.elector.stop()


# Words.


def test_operators_grep_these_lines(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="argus_sched.scheduling")
    stage = Stage().as_leader()
    stage.lock.leader_free = False
    stage.rounds(1)
    stage.lock.failures["tick"] = SessionLostError(Cause.TERMINATED, "terminating connection")
    stage.rounds(4)
    stage.lock.leader_free = True
    stage.rounds(1)
    assert [record.getMessage() for record in caplog.records] == [
        "Scheduler singleton lock acquired (key=911000001)",
        "Scheduler demoted: terminated, 500 ms since the last good tick (terminating connection)",
        "Scheduler standby: singleton failover probe started (retry every 1s)",
        "Scheduler failover: acquired singleton lock",
    ]


def test_a_recipes_standby_names_its_sixty_seconds(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="argus_sched.scheduling")
    stage = Stage(Timing.recipe())
    stage.lock.leader_free = False
    stage.rounds(3)
    assert [record.getMessage() for record in caplog.records] == [
        "Scheduler standby: singleton failover probe started (retry every 60s)"
    ]


def test_events_carry_epoch_cause_and_milliseconds() -> None:
    stage = Stage().as_leader()
    stage.lock.failures["tick"] = gone(Cause.TICK_TIMEOUT)
    stage.rounds(2)
    assert stage.told("elected") == [{"epoch": 1, "backend_pid": 4711, "failover": False, "seconds": 0.0}]
    (demoted,) = stage.told("demoted")
    assert demoted["cause"] is Cause.TICK_TIMEOUT
    assert demoted["silence_ms"] == pytest.approx(500)
