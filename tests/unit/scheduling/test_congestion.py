"""When waiting jobs are called congestion."""

from __future__ import annotations

from argus_sched.scheduling.congestion import Congestion


def test_only_a_lasting_lack_of_threads_is_told() -> None:
    one = Congestion()
    assert one.look(3, 0, 20, 100.0) == ""
    assert one.look(3, 0, 20, 114.0) == ""
    assert one.look(4, 0, 20, 115.0).startswith(
        "all 20 job threads have been busy for 15 s, 4 due jobs wait: "
    )
    assert one.look(4, 1, 20, 116.0) == ""
    assert one.look(4, 0, 20, 117.0) == ""
    assert one.look(0, 0, 20, 140.0) == ""
    assert one.look(1, 0, 20, 141.0) == ""
