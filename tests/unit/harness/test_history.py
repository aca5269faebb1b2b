"""Events as JSON lines."""

from __future__ import annotations

import pytest

from argus_sched.harness.history import (
    Belief,
    Born,
    Claimed,
    Died,
    Event,
    Fault,
    Finished,
    Frozen,
    History,
    Holders,
    Service,
    Skewed,
    Started,
    from_line,
    read_lines,
    to_line,
)

ONE_OF_EACH: list[Event] = [
    Started(1.5, "a", "tick", 1000, 3, 2),
    Finished(1.6, "a", "tick", 1000, 2),
    Claimed(1.4, "a", "tick", 1000, "succeeded"),
    Belief(1.0, "a", "leader", 3, 4.0, "won"),
    Belief(1.0, "a", "standby", 0),
    Holders(1.0, (11, 12)),
    Holders(1.0, None),
    Service(1.0, "a", True),
    Born(1.0, "a", "w1", 77),
    Died(2.0, "a", "kill"),
    Frozen(1.0, 2.0, "a"),
    Skewed(1.0, "a", -5.0),
    Fault(1.0, 2.0, "kill", "a", True, 1.0, "leader"),
]


@pytest.mark.parametrize("event", ONE_OF_EACH, ids=lambda event: type(event).__name__)
def test_an_event_survives_its_line(event: Event) -> None:
    line = to_line(event)
    assert line.endswith("\n")
    assert line.count("\n") == 1
    assert from_line(line) == event


def test_the_half_line_of_a_killed_writer_is_left_out() -> None:
    whole = to_line(ONE_OF_EACH[0]).encode()
    assert list(read_lines(whole + b"\n" + whole[:20])) == [ONE_OF_EACH[0]]


@pytest.mark.parametrize("line", ["{}", '{"event":"party"}', '{"event":"died"'])
def test_a_foreign_line_is_refused(line: str) -> None:
    with pytest.raises(ValueError):
        from_line(line)


def test_a_history_is_in_order_and_knows_its_neighbourhood() -> None:
    history = History.of(reversed(ONE_OF_EACH))
    assert [event.at for event in history.events] == sorted(event.at for event in ONE_OF_EACH)
    assert history.around(2.0, seconds=0.1) == (Died(2.0, "a", "kill"),)
    assert all(not isinstance(event, Holders) for event in history.around(1.0))
    assert len(history.around(1.5, limit=2)) == 2
