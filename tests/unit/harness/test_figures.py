"""Demotion, promotion and lateness per fault, out of hand-written histories."""

from __future__ import annotations

import pytest

from argus_sched.harness.figures import Bound, Percentiles, by_fault, samples, slow
from argus_sched.harness.history import Belief, Died, Event, Fault, Frozen, History, Started
from argus_sched.harness.reigns import Spell, reigns, spans_with, without


def measured(*events: Event, end: float = 100.0) -> list[tuple[float | None, float | None]]:
    history = History.of(events)
    return [
        (
            None if s.demotion_ms is None else round(s.demotion_ms, 3),
            None if s.promotion_ms is None else round(s.promotion_ms, 3),
        )
        for s in samples(history, reigns(history), end)
    ]


A, B = Belief(0.0, "a", "leader", 1), Belief(10.012, "b", "leader", 2)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param(
            [Fault(10, 10, "kill", "a", True, 10), Died(10, "a", "kill"), A, B], (None, 12.0), id="kill"
        ),
        pytest.param(
            [Fault(10, 10, "terminate", "a", True, 10), A, Belief(10.002, "a", "standby", 1), B],
            (2.0, 12.0),
            id="terminate",
        ),
        pytest.param(
            [Fault(10, 10, "terminate", "a", False, 10), A, Belief(10.002, "a", "standby", 1), B],
            (None, None),
            id="aimed at a standby",
        ),
        pytest.param(
            [
                Fault(10, 14, "freeze", "a", True, 10),
                Frozen(10, 14, "a"),
                A,
                Belief(13.02, "b", "leader", 2),
                Belief(14.005, "a", "standby", 1),
            ],
            (5.0, 3020.0),
            id="freeze: demotion counts from the thaw",
        ),
        pytest.param(
            [Fault(10, 10.4, "freeze", "a", True, 10), Frozen(10, 10.4, "a"), A],
            (None, None),
            id="shorter than the lease",
        ),
        pytest.param(
            [
                Fault(10, 11, "restart", "a", True, 11),
                A,
                Belief(10.001, "a", "standby", 1),
                Belief(11.03, "a", "leader", 2),
            ],
            (1.0, 30.0),
            id="restart: promotion counts from the database's return",
        ),
        pytest.param(
            [Fault(10, 10, "stop", "a", True, 10), A, Belief(10.01, "a", "stopped", 1), B],
            (10.0, 2.0),
            id="stop: promotion counts from when the old leader let go",
        ),
        pytest.param(
            [
                Fault(10, 15, "partition", "a", True, 10),
                Belief(9.9, "a", "leader", 1, 12.3),
                Belief(13.01, "b", "leader", 2),
            ],
            (2300.0, 3010.0),
            id="partition: the old leader's trust ran out",
        ),
    ],
)
def test_what_a_fault_cost(events: list[Event], expected: tuple[float | None, float | None]) -> None:
    assert measured(*events) == [expected]


def test_a_promotion_is_not_looked_for_beyond_the_next_fault() -> None:
    first, second = Fault(5, 5, "slow", "a", True, 5), Fault(10, 10, "kill", "a", True, 10)
    assert measured(first, second, A, Died(10, "a", "kill"), B) == [(None, None), (None, 12.0)]


def test_lateness_counts_the_fires_due_during_the_fault_and_the_second_after() -> None:
    runs = [Started(due + 0.05, "b", "tick", round(due * 1000), 2) for due in (9.0, 10.0, 10.9, 12.0)]
    history = History.of([Fault(10, 10, "kill", "a", True, 10), *runs])
    (sample,) = samples(history, (), 100.0)
    assert [round(late) for late in sample.lateness_ms] == [50, 50]


def test_percentiles_are_values_that_were_measured() -> None:
    assert Percentiles.of(range(1, 101)) == Percentiles(100, 50, 99, 100)
    assert Percentiles.of([7.0]) == Percentiles(1, 7.0, 7.0, 7.0)
    assert Percentiles.of([]).as_json() == {"p50": None, "p99": None, "max": None}


def test_a_missed_bound_is_one_sentence() -> None:
    history = History.of([Fault(10, 10, "kill", "a", True, 10), Died(10, "a", "kill"), A, B])
    figures = by_fault(samples(history, reigns(history), 100.0))
    assert slow(figures, {"kill": Bound(promotion_ms=10)}) == (
        "kill: promotion took up to 12 ms, bound 10 ms",
    )
    assert slow(figures, {"kill": Bound(promotion_ms=250), "freeze": Bound(1, 1)}) == ()


def test_spans_with_counts_spells_and_merges_what_touches() -> None:
    spells = [Spell("a", 1, 0, 5), Spell("b", 2, 4, 8), Spell("c", 3, 8, 9)]
    assert spans_with(spells, range(2, 9), 0, 10) == [(4, 5)]
    assert spans_with(spells, range(1), 0, 10) == [(9, 10)]
    assert spans_with(spells, range(1, 9), 1, 10) == [(1, 9)]


def test_without_takes_the_holes_out() -> None:
    assert without(0, 10, [(2, 3), (2.5, 4), (9, 12)]) == [(0, 2), (4, 9)]
    assert without(0, 1, [(-1, 5)]) == []
