"""How the lock is looked at: again where that may help, and blind where a database is away."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import UTC, datetime

from argus_sched.agent.kinds.scheduler_lock import observe_lock
from argus_sched.agent.packs import LockCheck
from argus_sched.agent.ports import LockRow, LockSample
from argus_sched.agent.status import Phase, Status
from argus_sched.clock import ManualClock
from argus_sched.errors import HostError, SourceError

CHECK = LockCheck(id="scheduler_lock", key=911_000_001)


def sample(*states: str, recovery: bool = False) -> LockSample:
    rows = tuple(
        LockRow(100 + n, "ExclusiveLock", True, state, "app", None, 0.1, 0.1, None)
        for n, state in enumerate(states)
    )
    return LockSample(rows, recovery, datetime(2026, 3, 14, tzinfo=UTC), "db:5432")


class Scripted:
    """A view that shows one prepared look after another, the last one for ever."""

    def __init__(self, looks: Sequence[LockSample | SourceError]) -> None:
        self.looks = list(looks)
        self.count = 0

    def sample(self, key: int) -> LockSample:
        assert key == CHECK.key
        look = self.looks[min(self.count, len(self.looks) - 1)]
        self.count += 1
        if isinstance(look, SourceError):
            raise look
        return look

    def close(self) -> None:
        """Nothing to close."""


def test_a_held_lock_is_looked_at_once() -> None:
    view, clock = Scripted([sample("idle")]), ManualClock()
    result, nodes = observe_lock(CHECK, "labs", [view], clock)
    assert result.status is Status.OK
    assert view.count == 1
    assert clock.elapsed() == ManualClock().elapsed()
    assert [(node.source, node.up, node.parent) for node in nodes] == [("database:labs", True, None)]


def test_a_failover_of_a_second_is_not_a_headless_scheduler() -> None:
    view = Scripted([sample(), sample(), sample("idle")])
    result, _ = observe_lock(CHECK, "labs", [view], ManualClock())
    assert result.status is Status.OK
    assert result.details["looks"] == 3


def test_a_lock_nobody_takes_is_critical_after_three_seconds() -> None:
    view, clock = Scripted([sample()]), ManualClock()
    result, _ = observe_lock(CHECK, "labs", [view], clock)
    assert (result.status, result.phase) == (Status.CRIT, Phase.UNHELD)
    assert view.count == 7
    assert clock.elapsed() - ManualClock().elapsed() == 3.0


def test_a_holder_at_work_in_every_look_warns() -> None:
    result, _ = observe_lock(CHECK, "labs", [Scripted([sample("active")])], ManualClock())
    assert (result.status, result.phase) == (Status.WARN, Phase.BUSY)


def test_a_transaction_caught_between_two_statements_is_forgiven() -> None:
    view = Scripted([sample("idle in transaction"), sample("idle")])
    result, _ = observe_lock(CHECK, "labs", [view], ManualClock())
    assert result.status is Status.OK


def test_an_unreachable_database_makes_the_lock_blind_and_says_why() -> None:
    view = Scripted([SourceError("cannot connect to the database at db:5432/app: Connection refused")])
    result, nodes = observe_lock(CHECK, "labs", [view], ManualClock())
    assert (result.status, result.blind_by) == (Status.UNKNOWN, "database:labs")
    assert result.details["holders"] is None
    assert [(node.up, "refused" in node.problem) for node in nodes] == [(False, True)]


def test_a_database_that_goes_away_while_it_is_watched_makes_the_lock_blind() -> None:
    view = Scripted([sample(), SourceError("the server is restarting")])
    result, nodes = observe_lock(CHECK, "labs", [view], ManualClock())
    assert result.status is Status.UNKNOWN
    assert not nodes[0].up


def test_a_lock_nobody_holds_here_may_be_held_on_the_server_that_is_away() -> None:
    views = [Scripted([sample()]), Scripted([SourceError("no route")])]
    result, nodes = observe_lock(CHECK, "labs", views, ManualClock())
    assert (result.status, result.blind_by) == (Status.UNKNOWN, "database:labs/2")
    assert result.details["holders"] == 0
    assert [node.source for node in nodes] == ["database:labs", "database:labs/2"]


def test_what_is_wrong_for_certain_is_told_though_another_server_is_away() -> None:
    views = [Scripted([sample("idle", recovery=True)]), Scripted([SourceError("no route")])]
    result, _ = observe_lock(CHECK, "labs", views, ManualClock())
    assert (result.status, result.phase) == (Status.CRIT, Phase.STANDBY_HOLDER)


def test_two_writable_servers_with_a_holder_each_are_split_brain() -> None:
    result, _ = observe_lock(
        CHECK, "labs", [Scripted([sample("idle")]), Scripted([sample("idle")])], ManualClock()
    )
    assert (result.status, result.phase) == (Status.CRIT, Phase.CONTENDED)


class Meeting(Scripted):
    """A view whose look ends when the other's has begun."""

    def __init__(self, barrier: threading.Barrier) -> None:
        super().__init__([sample("idle")])
        self.barrier = barrier

    def sample(self, key: int) -> LockSample:
        self.barrier.wait(60)
        return super().sample(key)


def test_databases_are_looked_at_side_by_side() -> None:
    barrier = threading.Barrier(2)
    _, nodes = observe_lock(CHECK, "labs", [Meeting(barrier), Meeting(barrier)], ManualClock())
    assert [node.source for node in nodes] == ["database:labs", "database:labs/2"]


def test_a_database_is_below_its_host_which_is_down_when_it_cannot_be_reached() -> None:
    views = [
        Scripted([HostError("no route to host")]),
        Scripted([SourceError("no password")]),
        Scripted([sample("idle")]),
    ]
    _, nodes = observe_lock(CHECK, "labs", views, ManualClock(), ["host:a", "host:b", None])
    assert [(node.app, node.source, node.parent, node.up) for node in nodes] == [
        ("labs", "database:labs", "host:a", False),
        ("labs", "database:labs/2", "host:b", False),
        ("labs", "database:labs/3", None, True),
        ("", "host:a", None, False),
        ("", "host:b", None, True),
    ]
