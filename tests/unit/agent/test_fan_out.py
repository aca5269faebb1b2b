"""Work side by side, and none of it waited for beyond the deadline."""

from __future__ import annotations

import threading

from argus_sched.agent.fan_out import fan_out


def test_every_piece_gives_its_value_or_its_error() -> None:
    def burst() -> int:
        raise ValueError("no")

    outcome = fan_out({"a": lambda: 1, "b": burst, "c": lambda: 3}, 30)
    assert (outcome["a"], outcome["c"]) == (1, 3)
    assert isinstance(outcome["b"], ValueError)


def test_a_piece_that_hangs_has_no_entry_and_holds_up_nobody() -> None:
    never = threading.Event()
    outcome = fan_out({"slow": lambda: never.wait(60), "fast": lambda: True}, 1)
    never.set()
    assert outcome == {"fast": True}


def test_pieces_run_at_the_same_time_but_no_more_than_allowed() -> None:
    meeting = threading.Barrier(3, timeout=30)
    assert fan_out(dict.fromkeys(range(3), meeting.wait), 30).keys() == {0, 1, 2}
    together = fan_out(dict.fromkeys(range(9), threading.current_thread), 30, most=2)
    assert len({thread.name for thread in together.values() if isinstance(thread, threading.Thread)}) <= 2


def test_no_work_is_no_wait() -> None:
    assert fan_out({}, 0) == {}


def test_a_lane_that_hangs_holds_up_no_other() -> None:
    """Two workers hang in a lane of forty until the one piece of the other lane has run."""
    done = threading.Event()

    def fast() -> bool:
        done.set()
        return True

    work = {**{number: (lambda: done.wait(60)) for number in range(40)}, 40: fast}
    outcome = fan_out(work, 120, most=2, lanes={number: number == 40 for number in work})
    assert outcome == dict.fromkeys(work, True)
