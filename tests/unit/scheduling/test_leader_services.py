"""Leader-only services: after the deferral, only while leading, stopped in reverse."""

from __future__ import annotations

from argus_sched.clock import ManualClock
from argus_sched.scheduling.events import Events
from argus_sched.scheduling.leader_services import LeaderServices


class Service:
    def __init__(self, name: str, log: list[str], fails: bool = False) -> None:
        self.name, self.log, self.fails = name, log, fails

    def start(self) -> None:
        if self.fails:
            raise ConnectionError("no network")
        self.log.append(f"start {self.name}")

    def stop(self) -> None:
        self.log.append(f"stop {self.name}")


class Stage:
    def __init__(self, *broken: str) -> None:
        self.clock, self.log, self.leads = ManualClock(), list[str](), True
        self.services = LeaderServices(self.clock, Events())
        for name in ("bot", "mail"):
            self.services.add(name, Service(name, self.log, name in broken))

    def begin(self) -> None:
        self.services.begin(0.5, lambda: self.leads)

    def look(self, after: float = 0.0) -> list[str]:
        self.clock.advance(after)
        self.services.run_once()
        return self.log


def test_nothing_starts_before_the_deferral_has_passed() -> None:
    stage = Stage()
    assert stage.look() == []
    stage.begin()
    assert stage.services.run_once() == 0.5
    assert stage.look(0.4) == []
    assert stage.look(0.2) == ["start bot", "start mail"]
    assert stage.services.running == ("bot", "mail")
    assert stage.look(9) == ["start bot", "start mail"]


def test_a_term_that_ended_meanwhile_starts_nothing() -> None:
    stage = Stage()
    stage.begin()
    stage.services.end()
    assert stage.look(1) == []
    stage.begin()
    stage.leads = False
    assert stage.look(1) == []


def test_demotion_stops_in_reverse() -> None:
    stage = Stage()
    stage.begin()
    stage.look(1)
    stage.services.end()
    assert stage.look()[2:] == ["stop mail", "stop bot"]
    assert stage.services.running == ()


def test_one_that_fails_to_start_keeps_no_other_from_it(caplog: object) -> None:
    stage = Stage("bot")
    stage.begin()
    assert stage.look(1) == ["start mail"]
    stage.services.end()
    assert stage.look() == ["start mail", "stop mail"]


def test_one_added_while_leading_is_started() -> None:
    stage = Stage()
    stage.begin()
    stage.look(1)
    stage.services.add("late", Service("late", stage.log))
    assert stage.look()[-1] == "start late"
