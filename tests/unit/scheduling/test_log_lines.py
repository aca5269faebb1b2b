"""The fixed lines, to the letter: the agent reads them."""

from __future__ import annotations

import logging

import pytest

from argus_sched.scheduling import log_lines


def test_the_lines_are_fixed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, log_lines.LOGGER)
    log_lines.disabled("a", "Job → A", "anna", "the supplier is down")
    log_lines.paused("a", "Job → A", "anna", "migration")
    log_lines.auto_disabled("a", "Job → A", 3, "ValueError: two\nlines")
    log_lines.enabled("a", "Job → A", "anna")
    assert [record.getMessage() for record in caplog.records] == [
        'Job "Job → A" (id=a) disabled by anna: the supplier is down',
        'Job "Job → A" (id=a) paused by anna: migration',
        'Job "Job → A" (id=a) auto-disabled after 3 failures in a row: ValueError: two lines',
        'Job "Job → A" (id=a) enabled by anna',
    ]
    assert {record.name for record in caplog.records} == {"argus_sched.scheduling.jobs"}
