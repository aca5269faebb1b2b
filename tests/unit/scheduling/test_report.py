"""What is told of a clock that differs."""

from __future__ import annotations

from typing import Any

from argus_sched.scheduling.events import Events
from argus_sched.scheduling.metrics import Metrics
from argus_sched.scheduling.report import Report


def test_a_clock_that_differs_is_told_once_until_it_was_right_again() -> None:
    told: list[tuple[str, Any]] = []
    metrics = Metrics()
    report = Report(Events(lambda event, fields: told.append((event, fields["seconds"]))), metrics)
    for offset in (0.1, -3600.0, -3601.0, 0.2, 5.0):
        report.clock(offset)
        assert metrics.clock_offset == offset
    assert told == [("clock_differs", -3600.0), ("clock_differs", 5.0)]
