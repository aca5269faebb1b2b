"""What a lock's session is set to, and how the server's spelling of it is read."""

from __future__ import annotations

import pytest

from argus_sched.postgres.preflight import (
    LEASE_SINCE,
    client_parameters,
    duration_in_milliseconds,
    session_settings,
)
from argus_sched.scheduling.leadership import Timing


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3s", 3000),
        ("2500ms", 2500),
        ("0", 0),
        ("10min", 600_000),
        ("1h", 3_600_000),
        ("1d", 86_400_000),
        ("3000", 3000),
        ("", None),
        ("off", None),
        ("3 weeks", None),
    ],
)
def test_a_duration_is_read_as_the_server_spells_it(text: str, expected: int | None) -> None:
    assert duration_in_milliseconds(text) == expected


def test_the_lease_is_set_only_where_the_server_has_one() -> None:
    assert session_settings(Timing(), LEASE_SINCE)["idle_session_timeout"] == 3000
    assert "idle_session_timeout" not in session_settings(Timing(), LEASE_SINCE - 1)


def test_without_a_lease_an_inherited_one_is_switched_off() -> None:
    assert session_settings(Timing.recipe(), LEASE_SINCE)["idle_session_timeout"] == 0


@pytest.mark.parametrize("timing", [Timing.default(), Timing.fast(), Timing.recipe()])
def test_the_client_gives_up_before_the_server_does(timing: Timing) -> None:
    ours, theirs = client_parameters(timing, "name"), session_settings(timing, LEASE_SINCE)
    assert int(ours["tcp_user_timeout"]) < theirs["tcp_user_timeout"]


@pytest.mark.parametrize("timing", [Timing.default(), Timing.fast(), Timing.recipe()])
def test_no_statement_timeout_cuts_a_wait_of_the_heir(timing: Timing) -> None:
    assert session_settings(timing, LEASE_SINCE)["statement_timeout"] > (timing.heir_wait or 0) * 1000
