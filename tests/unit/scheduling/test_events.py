"""Structured events: fields for programs, one line for people, and no harm from a listener."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

import pytest

from argus_sched.scheduling.events import Events


def test_an_event_is_one_line_whose_record_carries_its_fields(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "argus_sched.scheduling.events")
    Events(namespace="labs")(
        "fire_missed", {"job_id": "a", "until": datetime(2026, 3, 14, tzinfo=UTC), "reason": "too old"}
    )
    (record,) = caplog.records
    assert record.getMessage() == (
        "fire_missed namespace=labs job_id=a until=2026-03-14T00:00:00+00:00 reason='too old'"
    )
    assert record.event == "fire_missed"  # type: ignore[attr-defined]  # set through `extra`
    assert record.fields["job_id"] == "a"  # type: ignore[attr-defined]  # set through `extra`
    assert record.levelno == logging.WARNING


def test_a_listener_hears_what_the_log_level_hides(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[str] = []
    Events(lambda event, fields: heard.append(f"{event} {fields['job_id']}"))("fire_won", {"job_id": "a"})
    assert heard == ["fire_won a"]
    assert caplog.records == []


def test_a_listener_that_fails_is_logged_and_harms_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def fail(*_: object) -> None:
        raise ValueError("boom")

    Events(fail)("elected", {})
    assert "the event listener failed at elected" in caplog.text
