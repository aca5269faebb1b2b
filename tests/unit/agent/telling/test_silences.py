"""What a silence and a maintenance window cover, and which silences are refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from argus_sched import due_times
from argus_sched.agent.config.notify_policy import MaintenanceWindow
from argus_sched.agent.telling.silences import Silence, matches, muting, new_silence
from argus_sched.errors import SettingsError

AT = datetime(2026, 3, 14, 10, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("pattern", "subject", "means"),
    [
        ("labs/nightly", "labs/nightly", True),
        ("labs/*", "labs/nightly", True),
        ("*", "labs/docker:web", True),
        ("labs/n?ghtly", "labs/nightly", True),
        ("labs", "labs/nightly", False),
        ("LABS/*", "labs/nightly", False),
        ("labs/[a]", "labs/[a]", True),
    ],
)
def test_a_pattern_means_a_target(pattern: str, subject: str, means: bool) -> None:
    assert matches(pattern, subject) is means


def test_a_silence_ends_at_its_end() -> None:
    silence = Silence("labs/*", AT + HOUR, "deploy", number=3)
    assert muting("labs/job", AT + HOUR - timedelta(seconds=1), [silence]) == "silence 3: deploy"
    assert muting("labs/job", AT + HOUR, [silence]) is None
    assert muting("shop/job", AT, [silence]) is None


def test_a_window_is_open_by_the_clock_of_its_zone() -> None:
    """02:00 in Stockholm is 01:00 UTC in winter."""
    window = MaintenanceWindow("labs/*", due_times.cron("0 2 * * *", "Europe/Stockholm"), 2 * HOUR, "backup")
    open_at = [hour for hour in range(24) if muting("labs/job", AT.replace(hour=hour), [], [window])]
    assert open_at == [1, 2]
    assert muting("shop/job", AT.replace(hour=1), [], [window]) is None


def test_a_new_silence_has_an_end_a_reason_and_its_maker() -> None:
    silence = new_silence("labs/*", 2 * HOUR, " deploy ", AT, "ops")
    assert (silence.until, silence.reason, silence.by) == (AT + 2 * HOUR, "deploy", "ops")


@pytest.mark.parametrize(
    ("match", "length", "reason", "words"),
    [
        (" ", HOUR, "deploy", "needs a pattern"),
        ("labs/*", HOUR, "  ", "needs a reason"),
        ("labs/*", timedelta(0), "deploy", "must end within 366 days"),
        ("labs/*", timedelta(days=400), "deploy", "must end within 366 days"),
    ],
)
def test_a_silence_without_end_or_reason_is_refused(
    match: str, length: timedelta, reason: str, words: str
) -> None:
    with pytest.raises(SettingsError, match=words):
        new_silence(match, length, reason, AT)
